import assert from 'node:assert/strict';
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { pollValue } from '../../test/support/poll.ts';
import { linkRunnerProgram } from './program.ts';
import { encodeFrame } from './protocol.ts';
import { runnerCommand } from './runner-command.ts';
import { RunnerProcess } from './runner-process.ts';

/** An engine that runs nothing, and writes to standard error what it is asked for. */
const ENGINE = `
const log = (line) => require('node:fs').writeSync(2, line + '\\n');
const entry = { applySync: (_self, [kind]) => log('entered: ' + kind) };
class Isolate {
  isDisposed = false;
  constructor() { log('isolate'); }
  createContextSync() { return {}; }
  compileScriptSync(_text, { cachedData, produceCachedData }) {
    log(produceCachedData ? 'kept the code' : cachedData === undefined ? 'compiled' : 'used the ' + cachedData);
    return { cachedData: produceCachedData ? 'kept code' : undefined, runSync: () => ({ applySync: () => entry }) };
  }
  getHeapStatisticsSync() { return { used_heap_size: 0, externally_allocated_size: 0 }; }
  dispose() { this.isDisposed = true; log('disposed'); }
}
module.exports = { Isolate, Callback: class {} };
`;

describe('the start of a runner', () => {
  it('a runner has run a job of its own in another isolate, and kept its compiled code, before it is ready for the first job', async () => {
    const folder = await realpath(await mkdtemp(join(tmpdir(), 'temper-engine-')));
    try {
      const file = join(folder, 'engine.cjs');
      await writeFile(file, ENGINE);
      await writeFile(join(folder, 'package.json'), '{"version": "7.0.1"}');
      const frames: string[] = [];
      const ready = Promise.withResolvers<void>();
      const plan = runnerCommand(process.execPath, { entry: file, version: '7.0.1', folders: [folder] });
      const runner = new RunnerProcess(plan, {
        frame: ({ type }) => {
          frames.push(type);
          if (type === 'ready') ready.resolve();
        },
        ended: (reason) => ready.reject(new Error(`${reason}: ${runner.stderr}`)),
      });
      runner.sendBytes(encodeFrame({ program: await linkRunnerProgram(), engine: file }));
      await ready.promise;
      assert.deepEqual(frames, ['hello', 'ready']);
      // Written before `ready`, to another pipe.
      const asked = () => runner.stderr.trim().split('\n');
      const lines = await pollValue('the engine of the runner', asked, ({ length }) => length >= 7);
      runner.kill('the test ends');
      await runner.exited;
      const own = ['isolate', 'compiled', 'entered: start', 'kept the code', 'disposed'];
      assert.deepEqual(lines, [...own, 'isolate', 'used the kept code']);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
});
