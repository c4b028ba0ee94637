import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, it } from 'node:test';
import { parse } from 'yaml';
import { type CommandResult, plainEnvironment, ROOT, temper, temporaryFolder } from './command.ts';

/** Runs commands as a user types them, with `temper` on the PATH. */
async function shell(script: string, cwd: string): Promise<CommandResult> {
  const child = spawn('sh', ['-c', script], {
    cwd,
    env: {
      ...plainEnvironment(),
      PATH: `${join(ROOT, 'bin')}:${process.env['PATH'] ?? ''}`,
      RUNNER_TEMP: join(cwd, 'runner'),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code: code as number | null, stdout, stderr };
}

describe('temper init', () => {
  it('the next steps that init prints succeed, word for word', async () => {
    await using folder = await temporaryFolder();
    const created = await temper(['init', 'my-project'], { cwd: folder.path });
    assert.equal(created.code, 0, created.stderr);
    assert.match(created.stdout, /manifests\/agent\.yaml[\s\S]*Next:[\s\S]*cd my-project/);
    const [, steps = ''] = created.stdout.split('Next:\n');
    // The last step needs the key of a provider.
    const commands = steps.split('\n').filter((step) => step !== '' && !step.includes('API_KEY'));
    assert.equal(commands.length, 5);
    const { code, stdout, stderr } = await shell(['set -e', ...commands].join('\n'), folder.path);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^2 valid objects, no problems\n✓ word_count@[\s\S]*1 of 1 accepted\n/);
    assert.match(stdout, /"type":"tool-result","id":"count","tool":"word_count","ok":true/);
    assert.match(stdout, /"reply":"The text has 6 words\."/);
  });

  it('the whole folder of a new project is valid and runs, and its summary has the tokens that the ledger charged', async () => {
    await using folder = await temporaryFolder();
    await temper(['init', '.'], { cwd: folder.path });
    const validated = await temper(['validate', '-f', '.'], { cwd: folder.path });
    assert.equal(validated.code, 0, validated.stdout);
    assert.match(validated.stdout, /\n2 valid objects, no problems\n$/);
    const question = ['-m', 'Which files are here?', '--output', 'text'];
    const ran = await temper(['run', '-f', '.', '--model-script', 'tests/replay.yaml', ...question], {
      cwd: folder.path,
    });
    assert.equal(ran.code, 0, ran.stderr);
    const [, total = ''] = /Used 2 turns, 1 tool call, ([\d,]+) tokens/.exec(ran.stdout) ?? [];
    const { stdout } = await temper(['usage'], { cwd: folder.path });
    const [, input = '', output = ''] = /^agent\S+\s+hour\s+([\d,]+)\s+([\d,]+)/m.exec(stdout) ?? [];
    const amount = (text: string): number => Number(text.replaceAll(',', ''));
    assert.ok(amount(input) > 0, stdout);
    assert.equal(amount(total), amount(input) + amount(output));
  });

  it('the commands of the workflow of a new project succeed', async () => {
    await using folder = await temporaryFolder();
    await temper(['init'], { cwd: folder.path });
    const source = await readFile(join(folder.path, '.github/workflows/temper.yaml'), 'utf8');
    const workflow = parse(source) as { jobs: { check: { steps: { run?: string }[] } } };
    const [setup, ...commands] = workflow.jobs.check.steps.flatMap(({ run }) => (run === undefined ? [] : [run]));
    // The installation of packages, which this checkout already has.
    assert.equal(setup, 'make -C .temper-program setup');
    assert.equal(commands.length, 5);
    await symlink(ROOT, join(folder.path, '.temper-program'));
    const { code, stdout, stderr } = await shell(['set -e', ...commands].join('\n'), folder.path);
    assert.equal(code, 0, `${stdout}${stderr}`);
    assert.match(
      stdout,
      /2 valid objects, no problems[\s\S]*1 of 1 accepted[\s\S]*The project starts with[\s\S]*The text has 6 words/,
    );
  });

  it('init quotes a folder whose name a shell would split', async () => {
    await using folder = await temporaryFolder();
    const { stdout } = await temper(['init', "bob's project"], { cwd: folder.path });
    const [enter = ''] = /cd .*/.exec(stdout) ?? [];
    const entered = await shell(`${enter} && pwd`, folder.path);
    assert.match(entered.stdout, /bob's project\n$/, entered.stderr);
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
