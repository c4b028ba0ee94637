import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createRepository } from '../shared/repository.ts';
import { runArguments, runSample, shown } from '../shared/sample.ts';
import { REPOSITORY_URL } from '../shared/site.ts';

/** `make sample-skills`: the user pulls a skill from a repository of a host, and the agent of `manifests/skills` follows it. */

const SKILL = 'release-notes';
const FILES = ['SKILL.md', 'references/style.md'];
const file = (name: string): string => join(import.meta.dirname, '../../skills', name);

await runSample({
  name: 'skills',
  needsSite: true,
  prepare: async ({ own }) => {
    await mkdir(join(own, 'pulled'));
    const texts = FILES.map(async (path) => [
      `skills/${SKILL}/${path}`,
      await readFile(file(`${SKILL}/${path}`), 'utf8'),
    ]);
    const files = Object.fromEntries(await Promise.all(texts)) as Record<string, string>;
    return { repository: await createRepository(join(own, 'repository'), files) };
  },
  commands: (folders) => {
    const skills = shown(join(folders.own, 'pulled'));
    const message = 'Write the note for: tab completion of names.';
    return [
      ['skill', 'pull', `${REPOSITORY_URL}#main:skills/${SKILL}`, '--folder', join(skills, SKILL)],
      [
        ...runArguments(folders, [file('agent.yaml'), file('policy.yaml')], file('replay.yaml'), message),
        '--skills',
        skills,
      ],
    ];
  },
});
