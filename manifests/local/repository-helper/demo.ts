import { join } from 'node:path';
import { createRepository } from '../shared/repository.ts';
import { runArguments, runSample, shown } from '../shared/sample.ts';
import { REPOSITORY_URL } from '../shared/site.ts';

/** `make sample-git`: the agent clones a repository from a host, corrects a word, and commits. */

const file = (name: string): string => join(import.meta.dirname, name);

await runSample({
  name: 'git',
  needsSite: true,
  prepare: async ({ own }) => ({
    repository: await createRepository(join(own, 'repository'), {
      'README.md': '# Tools\n\nUse teh tools with care.\n',
    }),
  }),
  commands: (folders) => [
    runArguments(
      folders,
      [file('repository-helper.yaml')],
      file('replay.yaml'),
      `Correct the spelling in ${REPOSITORY_URL}`,
    ),
  ],
  remark: ({ work }) => `Read the commit: git -C ${shown(join(work, 'tools'))} show`,
});
