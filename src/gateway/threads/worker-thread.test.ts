import assert from 'node:assert/strict';
import { once } from 'node:events';
import { it } from 'node:test';
import { Worker } from 'node:worker_threads';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import { WorkerThread } from './worker-thread.ts';

const ECHO = `
const { parentPort } = require('node:worker_threads');
parentPort.on('message', (input) => parentPort.postMessage(input));
parentPort.postMessage('ready');
`;

it('a thread without work ends, and the next input starts another one', async () => {
  const workers: Worker[] = [];
  const thread = new WorkerThread<object, object>((options) => {
    const worker = new Worker(ECHO, { ...options, eval: true });
    workers.push(worker);
    return worker;
  }, 10);
  for (const index of [1, 2]) {
    assert.equal(await thread.ready(NEVER_ABORTED), undefined);
    const answer = thread.run({ index }, 60_000, NEVER_ABORTED);
    const [worker] = workers.slice(-1);
    assert.ok(worker);
    const ended = once(worker, 'exit');
    assert.deepEqual(await answer, { index });
    // Only the thread itself keeps this process alive until then.
    worker.ref();
    await ended;
    assert.equal(workers.length, index);
  }
});
