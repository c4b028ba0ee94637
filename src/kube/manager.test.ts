import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { TemperError } from '../lib/errors.ts';
import { createLogger } from '../telemetry/log.ts';
import { createSecrets } from '../telemetry/secrets.ts';
import { HeldClock, settle } from './held-clock.testing.ts';
import { Manager, type ManagerOptions } from './manager.ts';

/** A manager whose parts write down what is asked of them. */
function aManager(more: Partial<ManagerOptions> = {}) {
  const clock = new HeldClock();
  const story: string[] = [];
  const synced = Promise.withResolvers<void>();
  const elected = Promise.withResolvers<void>();
  const lost = new AbortController();
  const note = (what: string) => () => void story.push(what);
  const told = (what: string) => async () => void story.push(what);
  const waitFor = (promise: Promise<void>, signal: AbortSignal): Promise<void> =>
    Promise.race([
      promise,
      new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error))),
    ]);
  const informer = {
    hasSynced: false,
    start: note('informer starts'),
    synced: (signal: AbortSignal) => waitFor(synced.promise, signal),
    [Symbol.asyncDispose]: told('informer ends'),
  };
  const log = createLogger({ level: 'silent', destination: { write: () => {} }, secrets: createSecrets() });
  const options: ManagerOptions = {
    clock,
    log,
    informers: { pods: informer },
    controllers: [
      { start: note('controller starts'), stop: async (grace) => (story.push(`controller stops in ${grace}`), true) },
    ],
    tasks: [
      {
        name: 'sweep',
        run: async (signal) => {
          story.push('task starts');
          await new Promise((resolve) => signal.addEventListener('abort', resolve));
          story.push('task ends');
        },
      },
    ],
    election: {
      start: note('election starts'),
      elected: (signal) => waitFor(elected.promise, signal),
      lost: lost.signal,
      [Symbol.asyncDispose]: told('lease given back'),
    },
    resources: [
      { [Symbol.asyncDispose]: told('first resource ends') },
      { [Symbol.asyncDispose]: told('last resource ends') },
    ],
    ...more,
  };
  return { manager: new Manager(options), options, clock, story, synced, elected, lost, informer };
}

describe('the manager', () => {
  it('starts informers, then is elected, then works, and stops in the opposite order', async () => {
    const { manager, story, synced, elected, informer } = aManager();
    const stop = new AbortController();
    const run = manager.run(stop.signal);
    await settle();
    assert.deepEqual(story, ['informer starts']);
    assert.deepEqual(manager.waitingFor(), ['pods']);
    informer.hasSynced = true;
    synced.resolve();
    await settle();
    assert.deepEqual(manager.waitingFor(), []);
    assert.deepEqual(story.splice(0), ['informer starts', 'election starts']);
    elected.resolve();
    await settle();
    assert.deepEqual(story.splice(0), ['controller starts', 'task starts']);
    stop.abort();
    await run;
    assert.deepEqual(story, [
      'informer ends',
      'controller stops in 25000',
      'task ends',
      'last resource ends',
      'first resource ends',
      'lease given back',
    ]);
  });

  it('ends with the error of the lost lease, without waiting for anything', async () => {
    const { manager, story, synced, elected, lost } = aManager();
    const run = manager.run(new AbortController().signal);
    synced.resolve();
    elected.resolve();
    await settle();
    story.length = 0;
    lost.abort(new TemperError('TEMPER_LEADERSHIP_LOST', 'gone'));
    await assert.rejects(run, { code: 'TEMPER_LEADERSHIP_LOST' });
    assert.ok(story.includes('controller stops in 0'));
    assert.ok(story.includes('task ends'));
  });

  it('ends with what a task threw', async () => {
    const { manager, synced, elected, story } = aManager({
      tasks: [{ name: 'broken', run: () => Promise.reject(new Error('a defect')) }],
    });
    const run = manager.run(new AbortController().signal);
    synced.resolve();
    elected.resolve();
    await assert.rejects(run, /a defect/);
    assert.ok(story.includes('lease given back'));
  });

  it('stops while it waits for lists or for the lease, and starts nothing then', async () => {
    for (const isSynced of [false, true]) {
      const { manager, synced, story } = aManager();
      const stop = new AbortController();
      const run = manager.run(stop.signal);
      if (isSynced) synced.resolve();
      await settle();
      stop.abort(new Error('told to stop'));
      await run;
      assert.ok(!story.includes('controller starts'));
      assert.equal(story.at(-1), 'lease given back');
    }
  });

  it('gives the lease back in time when a part does not stop', async () => {
    const never = { [Symbol.asyncDispose]: () => new Promise<void>(() => {}) };
    const { manager, synced, elected, story, clock } = aManager({ resources: [never], grace: 10_000 });
    const stop = new AbortController();
    const run = manager.run(stop.signal);
    synced.resolve();
    elected.resolve();
    await settle();
    stop.abort();
    await clock.advance(8_000);
    await run;
    assert.equal(story.at(-1), 'lease given back');
  });

  it('works at once when there is no election', async () => {
    const { options, synced, story } = aManager();
    const { election: _none, ...alone } = options;
    const stop = new AbortController();
    const run = new Manager(alone).run(stop.signal);
    synced.resolve();
    await settle();
    assert.ok(story.includes('controller starts'));
    stop.abort();
    await run;
  });
});
