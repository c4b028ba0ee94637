import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, it } from 'node:test';
import { pollAssertion } from '../../support/poll.ts';
import { plainEnvironment, QUICKSTART, ROOT, startTemper, temporaryFolder } from '../command.ts';

const SCRIPT = `rules:
  - when: {lastUser: wait}
    answer: {text: late, delayMilliseconds: 600000}
  - answer: {text: Done.}
`;

async function aProject() {
  const folder = await temporaryFolder();
  await writeFile(join(folder.path, 'script.yaml'), SCRIPT);
  const words = ['run', '-f', QUICKSTART, '--model-script', 'script.yaml', '-o', 'text'];
  return { path: folder.path, words, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
}

/** Without NO_COLOR, so that a test can set it. */
function plainShell(): Record<string, string> {
  const { NO_COLOR: _, ...environment } = plainEnvironment();
  return environment;
}

/** Runs `temper` in a shell, for redirections that a child process cannot have otherwise. */
async function shell(command: string, cwd: string, environment: Record<string, string> = {}) {
  const child = spawn('sh', ['-c', command, 'sh', join(ROOT, 'bin/temper')], {
    cwd,
    env: { ...plainShell(), ...environment },
  });
  child.stdin.end();
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code: code as number | null, stdout, stderr };
}

describe('a command in an unusual environment', () => {
  it('a full disk behind standard output ends the command with one line, and no stack trace', async (t) => {
    if (process.platform !== 'linux') return t.skip('needs /dev/full');
    await using project = await aProject();
    for (const command of [`"$1" ${project.words.join(' ')} -m hello`, `"$1" validate -f ${QUICKSTART}`]) {
      const { code, stderr } = await shell(`${command} > /dev/full`, project.path);
      assert.equal(code, 1, stderr);
      const [line = '', ...others] = stderr.split('\n').filter((part) => !part.startsWith('note: '));
      assert.match(line, /^temper: TEMPER_OUTPUT_FAILED: standard output cannot be written: .*; free disk space/);
      assert.deepEqual(others, ['']);
    }
  });

  it('a full disk behind the state folder ends a run with one line, and the next run starts', async () => {
    await using project = await aProject();
    const run = `"$1" ${project.words.join(' ')} -m hello`;
    assert.equal((await shell(`${run} --state first`, project.path)).code, 0, 'the key exists');
    const { code, stderr } = await shell(`ulimit -f 0; ${run} --state second`, project.path);
    assert.equal(code, 2, stderr);
    assert.match(stderr, /TEMPER_STATE_UNUSABLE: .*second cannot be used as the state folder: /);
    assert.doesNotMatch(stderr, /\n {4}at /);
    assert.equal((await shell(`${run} --state second`, project.path)).code, 0);
  });

  for (const [signal, code] of [
    ['SIGHUP', 129],
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    it(`${signal} ends a run in order, with its summary and exit code ${code}`, async () => {
      await using project = await aProject();
      const running = startTemper([...project.words, '-m', 'wait'], { cwd: project.path });
      await pollAssertion('the message', () => assert.match(running.printed(), /▸ You: wait/));
      running.child.kill(signal);
      const ended = await running.ended;
      assert.equal(ended.code, code, ended.stderr);
      assert.match(ended.stdout, /Used 0 turns[^\n]*\n$/);
    });
  }

  it('a run continues its session after kill -9', async () => {
    await using project = await aProject();
    const words = [...project.words, '--session', 's'];
    const running = startTemper([...words, '-m', 'wait'], { cwd: project.path });
    await pollAssertion('the message', () => assert.match(running.printed(), /▸ You: wait/));
    running.child.kill('SIGKILL');
    await running.ended;
    await writeFile(join(project.path, 'script.yaml'), 'rules: [{answer: {text: Done.}}]\n');
    const { code, stdout, stderr } = await startTemper([...words, '-m', 'hello'], { cwd: project.path }).ended;
    assert.equal(code, 0, stderr);
    assert.match(stdout, /◂ analyst: Done\./);
  });

  it('bytes that are not UTF-8 are refused', async () => {
    await using project = await aProject();
    const { code, stderr } = await shell(`printf '\\377\\376x' | "$1" ${project.words.join(' ')} -m -`, project.path);
    assert.equal(code, 2);
    assert.match(stderr, /TEMPER_USAGE: standard input is not UTF-8 text/);
  });

  for (const [name, command, environment] of [
    ['closed standard streams', '"$1" validate -f agent.yaml <&- >&- 2>&-', {}],
    ['NO_COLOR beside FORCE_COLOR', '"$1" validate -f agent.yaml', { NO_COLOR: '1', FORCE_COLOR: '1' }],
    ['no home folder', '"$1" validate -f agent.yaml', { HOME: '/nonexistent' }],
    ['the locale C', '"$1" validate -f agent.yaml', { LC_ALL: 'C' }],
    ['a terminal without control sequences', '"$1" validate -f agent.yaml', { TERM: 'dumb' }],
  ] as const) {
    it(`${name} change nothing`, async () => {
      const { code, stdout, stderr } = await shell(command, QUICKSTART, environment);
      assert.equal(code, 0, stderr);
      assert.equal(stderr, '');
      assert.ok(!stdout.includes('\u001b'));
    });
  }
});
