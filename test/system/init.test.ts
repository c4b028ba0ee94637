import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { parse } from 'yaml';
import { temper, temporaryFolder } from './command.ts';

describe('temper init', () => {
  it('a new project passes validate and tool check, and its agent answers from the replay script', async () => {
    await using folder = await temporaryFolder();
    const project = join(folder.path, 'my project');
    const created = await temper(['init', 'my project'], { cwd: folder.path });
    assert.equal(created.code, 0, created.stderr);
    assert.match(created.stdout, /manifests\/agent\.yaml[\s\S]*Next:[\s\S]*cd my project/);
    const validated = await temper(['validate', '-f', 'manifests'], { cwd: project });
    assert.equal(validated.stdout, '2 valid objects, no problems\n', validated.stdout);
    const checked = await temper(['tool', 'check', 'tools/word_count.yaml'], { cwd: project });
    assert.equal(checked.code, 0, checked.stdout);
    const run = ['run', '-f', 'manifests', '--model-script', 'tests/replay.yaml', '-o', 'text'];
    const { code, stdout, stderr } = await temper([...run, '-m', 'Which files are here?'], { cwd: project });
    assert.equal(code, 0, `${stdout}${stderr}`);
    assert.match(stdout, /◂ assistant: The project starts with \S+\./);
  });

  it('the workflow of a new project runs the commands that the project passes', async () => {
    await using folder = await temporaryFolder();
    await temper(['init'], { cwd: folder.path });
    const text = await readFile(join(folder.path, '.github/workflows/temper.yaml'), 'utf8');
    const workflow = parse(text) as { jobs: { check: { steps: { run?: string }[] } } };
    const commands = workflow.jobs.check.steps.flatMap(({ run }) => (run === undefined ? [] : [run]));
    assert.deepEqual(
      commands.map((command) => command.split(' ').slice(0, 3).join(' ')),
      [
        'make -C .temper-program',
        '.temper-program/bin/temper validate -f',
        '.temper-program/bin/temper tool check',
        '.temper-program/bin/temper run -f',
      ],
    );
  });

  it('init overwrites nothing, and writes nothing when a file exists', async () => {
    await using folder = await temporaryFolder();
    await mkdir(join(folder.path, 'manifests'));
    await writeFile(join(folder.path, 'manifests/agent.yaml'), 'mine');
    const { code, stderr } = await temper(['init', '.'], { cwd: folder.path });
    assert.equal(code, 2);
    assert.match(stderr, /TEMPER_USAGE: \. already has manifests\/agent\.yaml; nothing was written/);
    assert.deepEqual(await readdir(folder.path), ['manifests']);
    assert.equal(await readFile(join(folder.path, 'manifests/agent.yaml'), 'utf8'), 'mine');
    await writeFile(join(folder.path, 'file'), '');
    assert.match((await temper(['init', 'file/x'], { cwd: folder.path })).stderr, /TEMPER_USAGE: .*cannot be written/);
  });

  it('each manifest of a new project names a schema beside it', async () => {
    await using folder = await temporaryFolder();
    await temper(['init', '.'], { cwd: folder.path });
    for (const kind of ['agent', 'policy']) {
      const text = await readFile(join(folder.path, `manifests/${kind}.yaml`), 'utf8');
      const [, path = ''] = /^# yaml-language-server: \$schema=(\S+)\n/.exec(text) ?? [];
      const schema = JSON.parse(await readFile(join(folder.path, 'manifests', path), 'utf8')) as { title: string };
      assert.equal(schema.title, (parse(text) as { kind: string }).kind);
    }
  });
});
