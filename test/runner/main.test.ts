import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';

const MAIN = resolve(import.meta.dirname, 'main.ts');

let folder: string;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'temper-test-runner-'));
});
after(() => rm(folder, { recursive: true, force: true }));

interface Outcome {
  readonly code: number | null;
  readonly output: string;
}

/** Runs test files with the given code as one group, in the order of their names. */
function runGroup(files: Readonly<Record<string, string>>): Promise<Outcome> {
  return runFiles(
    files,
    Object.keys(files).flatMap((name) => ['--group', name]),
  );
}

async function runFiles(
  files: Readonly<Record<string, string>>,
  patterns: readonly string[],
  variables: Readonly<Record<string, string>> = {},
): Promise<Outcome> {
  for (const [name, code] of Object.entries(files)) {
    await writeFile(join(folder, name), `import { describe, it, before } from 'node:test';\n${code}\n`);
  }
  // The runner of this test set NODE_TEST_CONTEXT, with which a test runner would report to it.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const child = spawn(process.execPath, [MAIN, '1', ...patterns], {
    cwd: folder,
    env: { ...env, ...variables },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = new Promise<number | null>((done) => void child.once('close', done));
  const [out, err, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { code, output: out + err };
}

const closing = (output: string): Record<string, number> =>
  Object.fromEntries(
    Array.from(output.matchAll(/^ℹ (tests|pass|fail) (\d+)$/gm), ([, name = '', count]) => [name, Number(count)]),
  );

const PASSES = `it('adds', () => {});`;

describe('test files that share a process', () => {
  it('every file runs in one process, and the closing lines count the tests of all', async () => {
    const { code, output } = await runGroup({
      'a.test.mjs': `globalThis[Symbol.for('pid')] = process.pid; ${PASSES}`,
      'b.test.mjs': `it('shares', () => { if (globalThis[Symbol.for('pid')] !== process.pid) throw new Error('alone'); });`,
    });
    assert.deepEqual([code, closing(output)], [0, { tests: 2, pass: 2, fail: 0 }], output);
  });

  it('a failing test fails the run under the name of its file, and the other files still run', async () => {
    const { code, output } = await runGroup({
      'a.test.mjs': `describe('sums', () => { it('fails', () => { throw new Error('wrong sum'); }); });`,
      'b.test.mjs': PASSES,
    });
    assert.deepEqual([code, closing(output)], [1, { tests: 2, pass: 1, fail: 1 }], output);
    assert.match(output, /failing tests:[^]*a\.test\.mjs[^]*wrong sum/);
  });

  it('a file that cannot load is a failed test under its name, and the other files still run', async () => {
    const { code, output } = await runGroup({ 'a.test.mjs': `import './missing.mjs';`, 'b.test.mjs': PASSES });
    assert.deepEqual([code, closing(output)], [1, { tests: 2, pass: 1, fail: 1 }], output);
    assert.match(output, /✖ a\.test\.mjs loads/);
  });

  it('a file that ends the process fails the run, which names that file and those without a result', async () => {
    const { code, output } = await runGroup({
      'a.test.mjs': PASSES,
      'b.test.mjs': `it('crashes', () => process.kill(process.pid, 'SIGKILL'));`,
      'c.test.mjs': PASSES,
    });
    assert.equal(code, 1, output);
    assert.match(output, /ended while b\.test\.mjs ran; without a result: .*b\.test\.mjs, c\.test\.mjs$/m);
  });

  it('a file that leaves the state of the process changed fails under its name', async () => {
    const { code, output } = await runGroup({
      'a.test.mjs': `it('sets', () => { process.env.LEFT = '1'; });`,
      'b.test.mjs': PASSES,
    });
    assert.deepEqual([code, closing(output)], [1, { tests: 3, pass: 2, fail: 1 }], output);
    assert.match(output, /a\.test\.mjs changed process\.env\.LEFT/);
  });

  it('hooks of a file apply to the tests of this file only', async () => {
    const { code, output } = await runGroup({
      'a.test.mjs': `before(() => { throw new Error('hook of a'); }); ${PASSES}`,
      'b.test.mjs': PASSES,
    });
    assert.deepEqual([code, closing(output).pass], [1, 1], output);
  });
});

describe('a test file with a process of its own', () => {
  it('a file that never ends fails under its name, and the other files still run', async () => {
    const files = {
      'a.test.mjs': `it('leaves a timer', () => { setInterval(() => {}, 1_000); });`,
      'b.test.mjs': PASSES,
    };
    const { code, output } = await runFiles(files, Object.keys(files), { TEST_FILE_LIMIT_MS: '5000' });
    assert.equal(code, 1, output);
    assert.match(output, /did not end within 5000 ms; what is open: [^]*failing tests:[^]*a\.test\.mjs/);
    assert.equal(closing(output)['pass'], 2, output);
  });
});
