import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { parse } from 'yaml';
import { BareRepository } from '../support/gitops/bare-repository.ts';
import { startGitHttpServer } from '../support/gitops/git-http-server.ts';
import { ROOT, temper, temporaryFolder } from './command.ts';

const SKILLS = join(ROOT, 'manifests/skills');

describe('skills on the command line', () => {
  it('a valid skill is checked and exported as the Capability of the sample', async () => {
    const checked = await temper(['skill', 'check', SKILLS, '--output', 'json']);
    assert.deepEqual([checked.code, checked.stderr], [0, '']);
    assert.deepEqual(JSON.parse(checked.stdout), {
      folder: join(SKILLS, 'release-notes'),
      capabilities: ['skill:release-notes'],
      findings: [],
    });
    const exported = await temper(['skill', 'export', SKILLS]);
    assert.equal(exported.code, 0, exported.stderr);
    assert.deepEqual(parse(exported.stdout), parse(await readFile(join(SKILLS, 'skill.yaml'), 'utf8')));
  });

  it('a skill with an error is named with the rule and the next step, and not exported', async () => {
    await using folder = await temporaryFolder();
    await mkdir(join(folder.path, 'bad'));
    await writeFile(join(folder.path, 'bad/SKILL.md'), '---\nname: finish\ndescription: d\nhooks: {}\n---\ntext');
    const checked = await temper(['skill', 'check', 'bad'], { cwd: folder.path });
    assert.equal(checked.code, 1);
    assert.match(checked.stdout, /^error: .*bad\/SKILL\.md: hooks .* \[key\]; /m);
    const exported = await temper(['skill', 'export', 'bad'], { cwd: folder.path });
    assert.deepEqual([exported.code, exported.stdout], [1, '']);
    assert.match(exported.stderr, /hooks/);
    const none = await temper(['skill', 'check', 'none'], { cwd: folder.path });
    assert.deepEqual([none.code, /TEMPER_USAGE/.test(none.stderr)], [2, true]);
  });

  it('a skill that was pulled from Git keeps its commit in the Capability, and taints the session of an agent that loads it', async () => {
    await using folder = await temporaryFolder();
    const read = (path: string) => readFile(join(SKILLS, 'release-notes', path), 'utf8');
    await using repository = await BareRepository.create({
      'notes/SKILL.md': await read('SKILL.md'),
      'notes/references/style.md': await read('references/style.md'),
    });
    await using server = await startGitHttpServer(repository.folder);
    const run = (...args: string[]) => temper(args, { cwd: folder.path });
    await mkdir(join(folder.path, 'skills'));
    const pulled = await run('skill', 'pull', `${server.url}#main:notes`, '--folder', 'skills/release-notes');
    const source = `${server.url}#${await repository.git('rev-parse', 'main')}:notes`;
    assert.equal(pulled.code, 0, pulled.stderr);
    assert.match(
      pulled.stdout,
      new RegExp(`^skill:release-notes of ${source} is in .*release-notes\nskill:release-notes: How this team `),
    );
    const exported = await run('skill', 'export', 'skills');
    assert.equal((parse(exported.stdout) as { spec: { source: string } }).spec.source, source);
    const manifests = ['agent.yaml', 'policy.yaml'].map((name) => join(SKILLS, name));
    await mkdir(join(folder.path, 'workspace'));
    const options = ['--skills', 'skills', '--workspace', 'workspace', '--output', 'json'];
    const runArguments = ['run', '-f', ...manifests, ...options, '--model-script', join(SKILLS, 'replay.yaml')];
    const ended = await run(...runArguments, '-m', 'Write the note for: tab completion of names.');
    assert.equal(ended.code, 0, ended.stderr);
    assert.match(ended.stdout, /Added: the command line completes names with the tab key\./);
    assert.match(ended.stdout, /"code":"session-tainted","message":".*the text of an imported skill/);
    const again = await run('skill', 'pull', `${server.url}#main:notes`, '--folder', 'skills/release-notes');
    assert.deepEqual([again.code, /TEMPER_USAGE.*--replace/.test(again.stderr)], [2, true]);
  });
});
