import { join } from 'node:path';
import { runArguments, runSample, writeConfig } from '../shared/sample.ts';
import { SEARCH_URL } from '../shared/site.ts';

/** `make sample-web`: the agent asks a search service, and reads a page of a host. */

const file = (name: string): string => join(import.meta.dirname, name);

await runSample({
  name: 'web',
  needsSite: true,
  prepare: (folders) => writeConfig(folders, 'search.yaml', { type: 'SearXNG', url: SEARCH_URL }),
  commands: (folders) => [
    runArguments(folders, [file('researcher.yaml')], file('replay.yaml'), 'How heavy is an anvil?'),
  ],
});
