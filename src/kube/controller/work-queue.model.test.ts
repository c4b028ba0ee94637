import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import { RecordingMetrics } from '../metrics.testing.ts';
import { createRateLimiter } from './rate-limiter.ts';
import { PRIORITY, type Priority, RESYNC_EVERY } from './priority-fifo.ts';
import { WorkQueue } from './work-queue.ts';

interface QueuedKey {
  key: string;
  priority: Priority;
}

/** A simple model of the queue: lists with linear search. */
interface QueueModel {
  now: number;
  queued: QueuedKey[];
  /** The namespaces with queued keys of a priority, in the order of their turns. */
  turns: Record<Priority, string[]>;
  /** Keys of normal priority that were taken while resyncs waited. */
  sinceResync: number;
  /** Keys in process, with the priority of their next run if they were added again in the meantime. */
  processing: Map<string, Priority | undefined>;
  waiting: Map<string, number>;
}

interface Real {
  queue: WorkQueue;
  clock: FakeClock;
}

type Command = fc.AsyncCommand<QueueModel, Real>;

function modelAdd(model: QueueModel, key: string, priority: Priority): void {
  if (model.processing.has(key)) {
    const known = model.processing.get(key);
    if (known === undefined || known < priority) model.processing.set(key, priority);
    return;
  }
  const known = model.queued.find((entry) => entry.key === key);
  if (known !== undefined && known.priority >= priority) return;
  if (known !== undefined) removeQueued(model, known);
  model.queued.push({ key, priority });
  const turns = model.turns[priority];
  if (!turns.includes(namespaceOf(key))) turns.push(namespaceOf(key));
}

const namespaceOf = (key: string): string => key.split('/').slice(0, -1).join('/');

/** Removes the key; the namespace keeps its turn while it has others of the priority. */
function removeQueued(model: QueueModel, removed: QueuedKey): void {
  const { priority } = removed;
  const namespace = namespaceOf(removed.key);
  model.queued = model.queued.filter((entry) => entry !== removed);
  const hasMore = model.queued.some((entry) => entry.priority === priority && namespaceOf(entry.key) === namespace);
  if (!hasMore) model.turns[priority] = model.turns[priority].filter((other) => other !== namespace);
}

function modelTake(model: QueueModel): QueuedKey | undefined {
  const waits = (priority: Priority) => model.queued.some((entry) => entry.priority === priority);
  const isResyncDue = waits(PRIORITY.resync) && model.sinceResync >= RESYNC_EVERY - 1;
  const priority = waits(PRIORITY.normal) && !isResyncDue ? PRIORITY.normal : PRIORITY.resync;
  model.sinceResync = priority === PRIORITY.normal && waits(PRIORITY.resync) ? model.sinceResync + 1 : 0;
  const [turn] = model.turns[priority];
  const next = model.queued.find((entry) => entry.priority === priority && namespaceOf(entry.key) === turn);
  if (next === undefined) return undefined;
  removeQueued(model, next);
  // Its turn is over: the namespace goes to the end.
  const [first, ...others] = model.turns[priority];
  if (first !== undefined && first === turn) model.turns[priority] = [...others, first];
  return next;
}

async function take(model: QueueModel, { queue }: Real): Promise<void> {
  const expected = modelTake(model);
  const work = await queue.get();
  assert.deepEqual(work, expected);
  assert.ok(work !== undefined && !model.processing.has(work.key), 'no key is processed twice at once');
  model.processing.set(work.key, undefined);
}

function finish(model: QueueModel, { queue }: Real, key: string): void {
  const again = model.processing.get(key);
  model.processing.delete(key);
  if (again !== undefined) modelAdd(model, key, again);
  queue.done(key);
}

class Add implements Command {
  readonly key: string;
  readonly priority: Priority;
  constructor(key: string, priority: Priority) {
    this.key = key;
    this.priority = priority;
  }
  check = (): boolean => true;
  toString = (): string => `add(${this.key}, ${this.priority})`;
  async run(model: QueueModel, { queue }: Real): Promise<void> {
    queue.add(this.key, this.priority);
    modelAdd(model, this.key, this.priority);
    assert.equal(queue.length, model.queued.length);
  }
}

class AddAfter implements Command {
  readonly key: string;
  readonly wait: number;
  constructor(key: string, wait: number) {
    this.key = key;
    this.wait = wait;
  }
  check = (): boolean => true;
  toString = (): string => `addAfter(${this.key}, ${this.wait})`;
  async run(model: QueueModel, { queue, clock }: Real): Promise<void> {
    queue.addAfter(this.key, this.wait);
    if (this.wait === 0) modelAdd(model, this.key, PRIORITY.normal);
    else {
      const readyAt = model.now + this.wait;
      model.waiting.set(this.key, Math.min(readyAt, model.waiting.get(this.key) ?? readyAt));
    }
    assert.ok(clock.pendingDelays().length <= 1, 'one timer');
  }
}

class Advance implements Command {
  readonly by: number;
  constructor(by: number) {
    this.by = by;
  }
  check = (): boolean => true;
  toString = (): string => `advance(${this.by})`;
  async run(model: QueueModel, { queue, clock }: Real): Promise<void> {
    await clock.advance(this.by);
    model.now += this.by;
    // Sorted by time only: the order of keys with the same time is unspecified, and does not occur here.
    const ready = [...model.waiting].filter(([, at]) => at <= model.now).sort(([, a], [, b]) => a - b);
    for (const [key] of ready) {
      model.waiting.delete(key);
      modelAdd(model, key, PRIORITY.normal);
    }
    assert.equal(queue.length, model.queued.length);
  }
}

class Get implements Command {
  check = (model: Readonly<QueueModel>): boolean => model.queued.length > 0;
  toString = (): string => 'get';
  run = take;
}

class Done implements Command {
  readonly pick: number;
  constructor(pick: number) {
    this.pick = pick;
  }
  check = (model: Readonly<QueueModel>): boolean => model.processing.size > 0;
  toString = (): string => `done(#${this.pick})`;
  async run(model: QueueModel, real: Real): Promise<void> {
    const keys = [...model.processing.keys()];
    finish(model, real, keys[this.pick % keys.length] ?? '');
    assert.equal(real.queue.length, model.queued.length);
  }
}

const KEYS = ['a', 'b', 'one/c', 'one/d', 'one/e', 'two/f'];
const aKey = fc.constantFrom(...KEYS);

const COMMANDS = [
  fc.tuple(aKey, fc.constantFrom(...Object.values(PRIORITY))).map(([key, priority]) => new Add(key, priority)),
  // Time moves by whole seconds and each key has its own millisecond offset, so no two keys become ready at the same time.
  fc
    .tuple(aKey, fc.nat(20))
    .map(([key, wait]) => new AddAfter(key, wait === 0 ? 0 : wait * 1_000 + KEYS.indexOf(key) + 1)),
  fc.nat(8).map((by) => new Advance(by * 1_000)),
  fc.constant(new Get()),
  fc.nat(3).map((pick) => new Done(pick)),
];

/** After a shutdown the queue still returns all queued keys, and then ends. */
async function drain(model: QueueModel, real: Real): Promise<void> {
  let ended = false;
  const drained = real.queue.shutDownWithDrain().then(() => (ended = true));
  real.queue.add('too late');
  while (model.queued.length + model.processing.size > 0) {
    await Promise.resolve();
    assert.equal(ended, false);
    const [key] = model.processing.keys();
    if (key === undefined) await take(model, real);
    else finish(model, real, key);
  }
  await drained;
  assert.equal(await real.queue.get(), undefined);
  assert.deepEqual(real.clock.pendingDelays(), []);
}

describe('the work queue, compared with a model', () => {
  it('the queue never loses or repeats a key, never gives one to two workers, and ends when drained', async () => {
    await fc.assert(
      fc.asyncProperty(fc.commands(COMMANDS, { maxCommands: 80 }), async (commands) => {
        const clock = new FakeClock();
        const options = { name: 'agents', clock, limiter: createRateLimiter(clock), metrics: new RecordingMetrics() };
        const real = { queue: new WorkQueue(options), clock };
        const turns = { [PRIORITY.normal]: [], [PRIORITY.resync]: [] };
        const model: QueueModel = {
          now: 0,
          queued: [],
          turns,
          sinceResync: 0,
          processing: new Map(),
          waiting: new Map(),
        };
        await fc.asyncModelRun(() => ({ model, real }), commands);
        await drain(model, real);
      }),
      { numRuns: 300 },
    );
  });
});
