import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { Worker } from 'node:worker_threads';
import { pollValue } from '../../../../test/support/poll.ts';
import { NEVER_ABORTED } from '../../../../test/support/stubs.ts';
import { systemClock } from '../../../lib/clock.ts';
import type { Json } from '../../../lib/json.ts';
import { anArtifact } from '../../../tempering/tempering.testing.ts';
import { TestServer } from '../../http/server.testing.ts';
import { VettingPool, type VettingPoolOptions } from './pool.ts';
import { prepareReview } from './prepare-review.ts';
import { startVettingThread } from './program.ts';
import type { StartThread } from '../../threads/worker-thread.ts';

/** Holds an artifact named `held` at a barrier until it opens, and never ends one named `endless`. The others come back with their name. */
const PROGRAM = `
const { parentPort, workerData } = require('node:worker_threads');
const barrier = new Int32Array(workerData);
parentPort.on('message', (text) => {
  const { name } = JSON.parse(text);
  Atomics.add(barrier, 1, 1);
  if (name === 'held') Atomics.wait(barrier, 0, 0);
  if (name === 'endless') for (;;);
  if (name === 'greedy') for (const kept = []; ; ) kept.push(new Array(1e6).fill(kept.length));
  parentPort.postMessage({ shape: [{ code: 'TEMPER_FORGE_SHAPE', message: name }], code: { violations: [], warnings: [] }, schemas: [] });
});
parentPort.postMessage('ready');
`;

const artifact = (name: string, more: Json = null): Json => ({ name, more });
const code = (expected: string) => (error: unknown) => (error as { code?: string }).code === expected;

describe('the threads that vet artifacts', () => {
  const shared = new SharedArrayBuffer(8);
  const barrier = new Int32Array(shared);
  const startThread: StartThread = (options) => new Worker(PROGRAM, { ...options, eval: true, workerData: shared });
  let pool: VettingPool;

  function open(options: Partial<VettingPoolOptions> = {}): void {
    barrier.fill(0);
    pool = new VettingPool({ clock: systemClock, startThread, ...options });
  }
  afterEach(async () => {
    barrier[0] = 1;
    Atomics.notify(barrier, 0);
    await pool[Symbol.asyncDispose]();
  });

  const vet = (agentUid: string, value: Json, signal = NEVER_ABORTED, namespace = 'team-a') =>
    pool.vet({ agentUid, namespace }, value, signal);
  const started = (count: number) =>
    pollValue(
      `${count} started artifacts`,
      () => Atomics.load(barrier, 1),
      (value) => value >= count,
      { intervalMs: 5 },
    );
  const release = (): void => {
    barrier[0] = 1;
    Atomics.notify(barrier, 0);
  };

  it('a thread gives the same result as this one, for right and for hostile artifacts', async () => {
    open({ startThread: startVettingThread });
    const hostile = anArtifact('patterns', {
      inputSchema: JSON.stringify({ properties: { a: { pattern: '(a+)+$', type: 'string' } }, type: 'object' }),
    });
    const reserved = anArtifact('fetch');
    const evil = anArtifact('evil', {
      implementation: { mode: 'Sandbox', source: 'function execute(input) { return eval(input.code); }' },
    });
    for (const one of [anArtifact('double'), hostile, reserved, evil, {}, { name: 1 }, [], null]) {
      const given = structuredClone(one) as unknown as Json;
      assert.deepEqual(await vet('u-1', given), prepareReview(given));
    }
    const { material } = await vet('u-1', anArtifact('double') as unknown as Json);
    assert.match(material?.ok === true ? material.text : '', /function execute\(input\)/, 'what the judge reads');
    assert.equal((await vet('u-1', evil as unknown as Json)).material, undefined, 'no judge reads a refused artifact');
    assert.match((await vet('u-1', reserved as unknown as Json)).shape[0]?.message ?? '', /reserved/);
    assert.ok((await vet('u-1', evil as unknown as Json)).code.violations.length > 0);
  });

  it('an artifact that a pod submits obeys the rules of a request: reserved names, tests that assert something, an object as input', async () => {
    open({ startThread: startVettingThread });
    const silent = { outputSchema: '{}', tests: [{ input: '{"value":1}' }, { input: '{"value":2}' }] };
    const refused: [Json, RegExp][] = [
      ...['fetch', 'invoke', 'execute', 'steps', 'constructor'].map((name): [Json, RegExp] => [
        anArtifact(name) as unknown as Json,
        /is reserved/,
      ]),
      [anArtifact('silent', silent) as unknown as Json, /no test case states its expected output/],
      [
        anArtifact('text', { inputSchema: '{"type":"string"}' }) as unknown as Json,
        /inputSchema must have type object/,
      ],
    ];
    for (const [given, message] of refused) {
      const { shape } = await vet('u-1', given);
      assert.match(shape[0]?.message ?? '', message, JSON.stringify(given).slice(0, 80));
    }
  });

  it('requests and artifacts of other agents are served while a thread is held', async () => {
    open();
    await using server = await TestServer.start();
    const held = vet('u-1', artifact('held'));
    await started(1);
    const second = vet('u-1', artifact('second'));
    assert.equal((await vet('u-2', artifact('other'))).shape[0]?.message, 'other');
    assert.equal(await server.status('/quick', { authorization: 'Bearer good-anna' }), 200);
    assert.equal(
      Atomics.load(barrier, 1),
      2,
      'the second artifact of the first agent waits, although a thread is free',
    );
    release();
    assert.deepEqual([(await held).shape[0]?.message, (await second).shape[0]?.message], ['held', 'second']);
  });

  it('agents take turns: an agent with many artifacts waits for itself', async () => {
    open({ threads: 1 });
    const order: string[] = [];
    const note = async (agent: string, name: string): Promise<void> => {
      await vet(agent, artifact(name));
      order.push(name);
    };
    const all = [note('u-1', 'held')];
    await started(1);
    all.push(note('u-1', 'a2'), note('u-1', 'a3'), note('u-1', 'a4'), note('u-2', 'b1'), note('u-3', 'c1'));
    release();
    await Promise.all(all);
    assert.deepEqual(order, ['held', 'a2', 'b1', 'c1', 'a3', 'a4']);
  });

  it('an agent has a limited number of artifacts in work, and eighteen agents of one namespace leave a place for another namespace', async () => {
    open({ threads: 1 });
    const all = [vet('u-1', artifact('held'))];
    await started(1);
    for (let index = 0; index < 72; index += 1) all.push(vet(`u-${Math.floor(index / 4) + 1}`, artifact(`n${index}`)));
    const settled = Promise.allSettled(all);
    await assert.rejects(vet('u-1', artifact('more')), {
      code: 'TEMPER_RATE_LIMITED',
      message: /^5 reviews of the agent/,
    });
    await assert.rejects(vet('u-19', artifact('more')), {
      code: 'TEMPER_RATE_LIMITED',
      message: /32 of the namespace/,
    });
    const other = vet('u-99', artifact('other'), NEVER_ABORTED, 'team-b');
    release();
    assert.equal((await other).shape[0]?.message, 'other');
    assert.equal((await settled).filter(({ status }) => status === 'fulfilled').length, 32);
  });

  it('namespaces take turns: an agent of another namespace waits for one artifact of a namespace with many agents', async () => {
    open({ threads: 1 });
    const order: string[] = [];
    const note = async (agent: string, name: string, namespace: string): Promise<void> => {
      await vet(agent, artifact(name), NEVER_ABORTED, namespace);
      order.push(name);
    };
    const all = [note('u-0', 'held', 'team-a')];
    await started(1);
    for (let index = 1; index <= 6; index += 1) all.push(note(`u-${index}`, `a${index}`, 'team-a'));
    all.push(note('u-9', 'b1', 'team-b'), note('u-9', 'b2', 'team-b'));
    release();
    await Promise.all(all);
    assert.deepEqual(order, ['held', 'a1', 'b1', 'a2', 'b2', 'a3', 'a4', 'a5', 'a6']);
  });

  it('an artifact that takes too long or too much memory is refused, its thread ends, and the next one is vetted', async () => {
    open({ threads: 1, timeoutMs: 200, share: { perSecond: 1, burst: 1_000_000 } });
    assert.match((await vet('u-1', artifact('endless'))).shape[0]?.message ?? '', /takes too long/);
    await pool[Symbol.asyncDispose]();
    open({ threads: 1, timeoutMs: 60_000, share: { perSecond: 1, burst: 1_000_000 } });
    assert.match((await vet('u-1', artifact('greedy'))).shape[0]?.message ?? '', /too much memory/);
    assert.equal((await vet('u-1', artifact('next'))).shape[0]?.message, 'next');
  });

  it('a thread that cannot start is no fault of the artifact', async () => {
    open({ startThread: (options) => new Worker('process.exit(1)', { ...options, eval: true }) });
    await assert.rejects(vet('u-1', artifact('first')), code('TEMPER_OVERLOADED'));
  });

  it('an agent that used its share of time is refused with the time to wait, and others are not', async () => {
    const clock = { ms: 0, ...systemClock, monotonic: () => clock.ms };
    open({ clock, share: { perSecond: 10, burst: 100 } });
    const held = vet('u-1', artifact('held'));
    await started(1);
    clock.ms = 300;
    release();
    await held;
    await assert.rejects(vet('u-1', artifact('more')), { code: 'TEMPER_RATE_LIMITED', retry: 20_100 });
    assert.equal((await vet('u-1', artifact('held'))).shape[0]?.message, 'held', 'a cached result costs nothing');
    assert.equal((await vet('u-2', artifact('other'))).shape[0]?.message, 'other');
    clock.ms += 20_100;
    assert.equal((await vet('u-1', artifact('more'))).shape[0]?.message, 'more');
  });

  it('equal artifacts are vetted once', async () => {
    open();
    await vet('u-1', artifact('same'));
    await vet('u-2', artifact('same'));
    assert.equal(Atomics.load(barrier, 1), 1);
    await vet('u-2', artifact('same', 1));
    assert.equal(Atomics.load(barrier, 1), 2);
  });

  it('an artifact above the size of any tool is refused without a thread', async () => {
    open();
    const huge = artifact('huge', 'x'.repeat(200_000));
    assert.match((await vet('u-1', huge)).shape[0]?.message ?? '', /more than 131072 characters/);
    assert.equal(Atomics.load(barrier, 1), 0);
  });

  it('a caller that leaves frees its place and its thread', async () => {
    open({ threads: 1 });
    const leaving = new AbortController();
    const held = vet('u-1', artifact('held'), leaving.signal);
    await started(1);
    const waiting = vet('u-2', artifact('waiting'), leaving.signal);
    const staying = vet('u-3', artifact('staying'));
    const left = Promise.all([
      assert.rejects(held, code('TEMPER_CANCELLED')),
      assert.rejects(waiting, code('TEMPER_CANCELLED')),
    ]);
    leaving.abort();
    await left;
    assert.equal((await staying).shape[0]?.message, 'staying');
  });
});
