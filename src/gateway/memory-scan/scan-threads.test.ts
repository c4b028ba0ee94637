import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import { type MemoryBytes, scanHere } from '../../agent/tools/memory-scan.ts';
import { systemClock } from '../../lib/clock.ts';
import { TestServer } from '../http/server.testing.ts';
import type { StartThread } from '../threads/worker-thread.ts';
import { startScanThread } from './program.ts';
import { ScanThreads, type ScanThreadsOptions } from './scan-threads.ts';

const record = (key: string, value: string): Uint8Array => Buffer.from(JSON.stringify({ key, value, tainted: false }));
const small: MemoryBytes = { own: [record('plan', 'west')], shared: [] };
const large: MemoryBytes = {
  own: Array.from({ length: 40 }, (_, index) => record(`k${index}`, `west ${'x '.repeat(index * 100)}`)),
  shared: [record('shared.plan', 'west '.repeat(1_000))],
};

/** Holds every memory at a barrier until it opens, then finds nothing. */
const HELD = `
const { parentPort, workerData } = require('node:worker_threads');
const barrier = new Int32Array(workerData);
parentPort.on('message', () => {
  Atomics.add(barrier, 1, 1);
  Atomics.wait(barrier, 0, 0);
  parentPort.postMessage([]);
});
parentPort.postMessage('ready');
`;

/** Ends with the first memory, as a thread does that needs more than it may hold. */
const FAILING = `
const { parentPort } = require('node:worker_threads');
parentPort.on('message', () => process.exit(1));
parentPort.postMessage('ready');
`;

describe('the thread that searches memories', () => {
  const shared = new SharedArrayBuffer(8);
  const barrier = new Int32Array(shared);
  const release = (): void => {
    barrier[0] = 1;
    Atomics.notify(barrier, 0);
  };
  let started = 0;
  let threads: ScanThreads;
  function open(options: Partial<ScanThreadsOptions> = {}): void {
    barrier.fill(0);
    started = 0;
    threads = new ScanThreads({ clock: systemClock, startThread: startScanThread, ...options });
  }
  const counted =
    (start: StartThread): StartThread =>
    (options) => {
      started += 1;
      return start(options);
    };
  const held: StartThread = (options) => new Worker(HELD, { ...options, eval: true, workerData: shared });
  afterEach(async () => {
    release();
    await threads[Symbol.asyncDispose]();
  });
  const scanOf = (agentUid: string, namespace = 'team-a', signal = NEVER_ABORTED) =>
    threads.of({ agentUid, namespace }, signal);

  it('a thread finds what this thread finds, and a small memory needs none', async () => {
    open({ startThread: counted(startScanThread) });
    for (const query of ['west', undefined])
      assert.deepEqual(await scanOf('u-1')(query, async () => small), await scanHere(query, async () => small));
    assert.equal(started, 0);
    for (const query of ['west', 'shared x', undefined]) {
      const found = await scanOf('u-1')(query, async () => large);
      assert.deepEqual(found, await scanHere(query, async () => large));
      assert.ok(found.length > 0);
    }
    assert.equal(started, 1);
  });

  it('requests are served while a full memory is searched', async () => {
    open({ startThread: held });
    await using server = await TestServer.start();
    const search = scanOf('u-1')('west', async () => large);
    assert.equal(await server.status('/quick', { authorization: 'Bearer good-anna' }), 200);
    release();
    assert.deepEqual(await search, []);
  });

  it('a memory is read when it is the turn of its agent: one at a time, and namespaces take turns', async () => {
    open({ startThread: held });
    const order: string[] = [];
    const search = (agent: string, namespace: string) =>
      scanOf(agent, namespace)('west', async () => {
        order.push(agent);
        return large;
      });
    const all = [search('a0', 'team-a'), search('a1', 'team-a'), search('a2', 'team-a'), search('b1', 'team-b')];
    assert.deepEqual(order, ['a0']);
    release();
    await Promise.all(all);
    assert.deepEqual(order, ['a0', 'a1', 'b1', 'a2']);
  });

  it('an agent that used its share of time is refused before its memory is read, and others are not', async () => {
    const clock = { ms: 0, ...systemClock, monotonic: () => clock.ms };
    open({ clock, startThread: held, share: { perSecond: 10, burst: 100 } });
    const first = scanOf('u-1')('west', async () => large);
    while (Atomics.load(barrier, 1) === 0) await setImmediate();
    clock.ms = 300;
    release();
    await first;
    const unread = (): Promise<never> => assert.fail('the memory was read');
    await assert.rejects(scanOf('u-1')('west', unread), { code: 'TEMPER_RATE_LIMITED', retry: 20_100 });
    assert.deepEqual(await scanOf('u-2')('west', async () => large), []);
  });

  it('a memory that cannot be read rejects its own search only', async () => {
    open();
    await assert.rejects(
      scanOf('u-1')('west', () => Promise.reject(new Error('away'))),
      /away/,
    );
    assert.equal((await scanOf('u-1')('west', async () => large)).length, 41);
  });

  it('a search whose thread fails is refused, and the next one has another thread', async () => {
    let isFirst = true;
    open({
      startThread: (options) => {
        const program = isFirst ? FAILING : undefined;
        isFirst = false;
        return program === undefined ? startScanThread(options) : new Worker(program, { ...options, eval: true });
      },
    });
    await assert.rejects(
      scanOf('u-1')('west', async () => large),
      { code: 'TEMPER_OVERLOADED', message: /too much memory/ },
    );
    assert.equal((await scanOf('u-2')('west', async () => large)).length, 41);
  });
});
