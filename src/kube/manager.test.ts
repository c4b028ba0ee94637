import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../test/support/stubs.ts';
import { TemperError } from '../lib/errors.ts';
import { createLogger } from '../telemetry/log.ts';
import { createSecretRedactor } from '../telemetry/secret-redactor.ts';
import { FakeClock, flushPromises } from '../lib/fake-clock.testing.ts';
import { Manager, type ManagerOptions } from './manager.ts';

/** A manager whose components record their calls. */
function aManager(more: Partial<ManagerOptions> = {}) {
  const clock = new FakeClock();
  const calls: string[] = [];
  const synced = Promise.withResolvers<void>();
  const elected = Promise.withResolvers<void>();
  const lost = new AbortController();
  const record = (what: string) => () => void calls.push(what);
  const recordAsync = (what: string) => async () => void calls.push(what);
  const waitFor = (promise: Promise<void>, signal: AbortSignal): Promise<void> =>
    Promise.race([
      promise,
      new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error))),
    ]);
  const informer = {
    hasSynced: false,
    start: record('informer started'),
    synced: (signal: AbortSignal) => waitFor(synced.promise, signal),
    [Symbol.asyncDispose]: recordAsync('informer disposed'),
  };
  const log = createLogger({ level: 'silent', destination: { write: () => {} }, secrets: createSecretRedactor() });
  const options: ManagerOptions = {
    clock,
    log,
    informers: { pods: informer },
    controllers: [
      {
        start: record('controller started'),
        stop: async (grace) => (calls.push(`controller stopped with grace ${grace}`), true),
      },
    ],
    tasks: [
      {
        name: 'sweep',
        run: async (signal) => {
          calls.push('task started');
          await new Promise((resolve) => signal.addEventListener('abort', resolve));
          calls.push('task ended');
        },
      },
    ],
    election: {
      start: record('election started'),
      elected: (signal) => waitFor(elected.promise, signal),
      lost: lost.signal,
      [Symbol.asyncDispose]: recordAsync('lease released'),
    },
    resources: [
      { [Symbol.asyncDispose]: recordAsync('first resource disposed') },
      { [Symbol.asyncDispose]: recordAsync('last resource disposed') },
    ],
    ...more,
  };
  return { manager: new Manager(options), options, clock, calls, synced, elected, lost, informer };
}

describe('the manager', () => {
  it('the manager starts informers, election and controllers in this order, and releases the Lease last', async () => {
    const { manager, calls, synced, elected, informer } = aManager();
    const stop = new AbortController();
    const run = manager.run(stop.signal);
    await flushPromises();
    assert.deepEqual(calls, ['informer started']);
    assert.deepEqual(manager.unsyncedInformers(), ['pods']);
    informer.hasSynced = true;
    synced.resolve();
    await flushPromises();
    assert.deepEqual(manager.unsyncedInformers(), []);
    assert.deepEqual(calls.splice(0), ['informer started', 'election started']);
    elected.resolve();
    await flushPromises();
    assert.deepEqual(calls.splice(0), ['controller started', 'task started']);
    stop.abort();
    await run;
    assert.deepEqual(calls, [
      'informer disposed',
      'controller stopped with grace 25000',
      'task ended',
      'last resource disposed',
      'first resource disposed',
      'lease released',
    ]);
  });

  it('after leadership is lost, run rejects without a grace period', async () => {
    const { manager, calls, synced, elected, lost } = aManager();
    const run = manager.run(NEVER_ABORTED);
    synced.resolve();
    elected.resolve();
    await flushPromises();
    calls.length = 0;
    lost.abort(new TemperError('TEMPER_LEADERSHIP_LOST', 'gone'));
    await assert.rejects(run, { code: 'TEMPER_LEADERSHIP_LOST' });
    assert.ok(calls.includes('controller stopped with grace 0'));
    assert.ok(calls.includes('task ended'));
  });

  it('run rejects with the error of a failed task', async () => {
    const { manager, synced, elected, calls } = aManager({
      tasks: [{ name: 'broken', run: () => Promise.reject(new Error('a defect')) }],
    });
    const run = manager.run(NEVER_ABORTED);
    synced.resolve();
    elected.resolve();
    await assert.rejects(run, /a defect/);
    assert.ok(calls.includes('lease released'));
  });

  it('a stop during startup starts no controllers', async () => {
    for (const isSynced of [false, true]) {
      const { manager, synced, calls } = aManager();
      const stop = new AbortController();
      const run = manager.run(stop.signal);
      if (isSynced) synced.resolve();
      await flushPromises();
      stop.abort(new Error('stop requested'));
      await run;
      assert.ok(!calls.includes('controller started'));
      assert.equal(calls.at(-1), 'lease released');
    }
  });

  it('the Lease is released in time when a component does not stop', async () => {
    const never = { [Symbol.asyncDispose]: () => new Promise<void>(() => {}) };
    const { manager, synced, elected, calls, clock } = aManager({ resources: [never], graceMs: 10_000 });
    const stop = new AbortController();
    const run = manager.run(stop.signal);
    synced.resolve();
    elected.resolve();
    await flushPromises();
    stop.abort();
    await clock.advance(8_000);
    await run;
    assert.equal(calls.at(-1), 'lease released');
  });

  it('a component that fails to stop leaves no timer that would keep the process alive', async () => {
    const broken = { [Symbol.asyncDispose]: () => Promise.reject(new Error('cannot be flushed')) };
    const { manager, synced, elected, clock } = aManager({ resources: [broken] });
    const stop = new AbortController();
    const run = manager.run(stop.signal);
    synced.resolve();
    elected.resolve();
    await flushPromises();
    stop.abort();
    await assert.rejects(run, /cannot be flushed/);
    assert.deepEqual(clock.pendingDelays(), []);
  });

  it('without an election, controllers start when the caches are synced', async () => {
    const { options, synced, calls } = aManager();
    const { election: _none, ...alone } = options;
    const stop = new AbortController();
    const run = new Manager(alone).run(stop.signal);
    synced.resolve();
    await flushPromises();
    assert.ok(calls.includes('controller started'));
    stop.abort();
    await run;
  });
});
