import { join } from 'node:path';
import { runArguments, runSample, writeConfig } from '../shared/sample.ts';

/** `make sample-mcp`: the user accepts the tool of an MCP server, and the agent calls it. */

const file = (name: string): string => join(import.meta.dirname, name);
/** Of the list that `temper mcp tools weights` prints. A server that lists anything else is refused, until a user has read it. */
const DIGEST = 'sha256:44a76284d91aa263727e6b07bb054dd0d5007c0737f2ed625fb6c9c022df13d1';

await runSample({
  name: 'mcp',
  prepare: (folders) =>
    writeConfig(folders, 'mcp.yaml', {
      servers: [{ name: 'weights', folder: file('server'), program: 'weights.ts' }],
    }),
  commands: (folders) => [
    ['mcp', 'tools', 'weights'],
    ['mcp', 'accept', 'weights', '--digest', DIGEST],
    runArguments(
      folders,
      [file('mcp-user.yaml'), file('capability.yaml')],
      file('replay.yaml'),
      'How heavy is an anvil?',
    ),
  ],
});
