import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import type { Clock } from '../../lib/clock.ts';
import type { Json } from '../../lib/json.ts';
import type { Ledger } from '../../ledger/port.ts';
import type { DocumentStore } from '../jetstream/document-store.ts';
import { parseAccountRecord } from './account-record.ts';
import { openSharedLedger, type SharedLedger } from './ledger.ts';

/**
 * Runs gateways and their store through every order of their steps: each read and write of the store, each deadline, commit, flush, lost
 * response, refused write, outage and loss of the record. One run follows a list of choices; the next run changes the last choice that has
 * an alternative.
 */

const LIMIT = 100;
const NOON = Date.UTC(2031, 4, 5, 12);
const ACCOUNT = 'agent/u';

/** Of a write: stored; stored without a response; not stored. The last two begin an outage as well, so the attempts of the change end. */
const OUTCOMES = ['done', 'lost', 'refused', 'lost in an outage', 'refused in an outage'] as const;
type Outcome = (typeof OUTCOMES)[number];
/** Attempts of one change. */
const OUTAGE_CALLS = 3;

interface StoreCall {
  name: string;
  outcomes: readonly Outcome[];
  end: (outcome: Outcome) => void;
}

/** One record. Every call waits until the run ends it. */
class SteppedStore {
  stored: { value: Json; revision: number } | undefined;
  calls: StoreCall[] = [];
  faults: number;
  /** Never repeats, also after the loss of the record. */
  #revision = 0;

  constructor(faults: number) {
    this.faults = faults;
  }

  of(gateway: string): DocumentStore {
    let failing = 0;
    const step = async (name: string, outcomes: readonly Outcome[]): Promise<Outcome> => {
      if (failing === 0) return this.#step(`${gateway} ${name}`, outcomes);
      failing -= 1;
      throw new Error('the server is unreachable');
    };
    return {
      get: async () => {
        await step('reads', ['done']);
        return structuredClone(this.stored);
      },
      write: async (_key, value, revision) => {
        const outcome = await step('writes', OUTCOMES);
        if (outcome.endsWith('outage')) failing = OUTAGE_CALLS;
        if (outcome.startsWith('refused')) throw new Error('the server is unreachable');
        if ((this.stored?.revision ?? 0) !== revision) return undefined;
        this.#revision += 1;
        this.stored = { value: structuredClone(value), revision: this.#revision };
        if (outcome.startsWith('lost')) throw new Error('the response was lost');
        return this.#revision;
      },
    };
  }

  #step(name: string, outcomes: readonly Outcome[]): Promise<Outcome> {
    const { promise, resolve } = Promise.withResolvers<Outcome>();
    const call: StoreCall = {
      name,
      outcomes,
      end: (outcome) => {
        this.calls.splice(this.calls.indexOf(call), 1);
        if (outcome !== 'done') this.faults -= 1;
        resolve(outcome);
      },
    };
    this.calls.push(call);
    return promise;
  }

  get record() {
    return parseAccountRecord(this.stored?.value);
  }
}

/** Short waits between attempts end at once, deadlines never by themselves, and the interval of the flushes by a step. */
class SteppedClock implements Clock {
  readonly now = (): Date => new Date(NOON);
  #monotonic = 0;
  #flush: (() => void) | undefined;

  monotonic = (): number => this.#monotonic;

  sleep = (milliseconds: number, signal: AbortSignal): Promise<void> => {
    if (milliseconds <= 250) return Promise.resolve();
    return new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(new Error('aborted')));
      if (milliseconds === 1_000) this.#flush = resolve;
    });
  };

  /** Lets the flush run as if its interval, the delay of commits and the retention of allocations had passed. */
  flush(): void {
    this.#monotonic += 100_000;
    this.#flush?.();
  }
}

interface Plan {
  /** What each gateway reserves and then spends. */
  calls: readonly { reserved: number; spent: number }[];
  /** Lost responses and refused writes per run. */
  faults: number;
  /** Deadlines that pass per run. */
  deadlines?: number;
  /** Flushes per gateway and run. */
  flushes?: number;
  /** The record is deleted once per run, with the spend and the allocations in it. */
  loses?: boolean;
}

interface Step {
  name: string;
  run: () => void;
}

type CallState = 'new' | 'reserving' | 'granted' | 'denied' | 'failed' | 'committed';

class Gateway {
  readonly shared: SharedLedger;
  readonly #call: Plan['calls'][number];
  readonly #name: string;
  readonly #deadline = new AbortController();
  readonly #clock = new SteppedClock();
  #flushes: number;
  state: CallState = 'new';
  #id = '';

  constructor(name: string, call: Plan['calls'][number], flushes: number, store: SteppedStore) {
    let serial = 0;
    const ids = { next: (prefix: string) => `${name}-${prefix}-${(serial += 1)}` };
    this.shared = openSharedLedger({
      store: store.of(name),
      clock: this.#clock,
      ids,
      random: () => 0,
      onError: () => {},
    });
    this.#name = name;
    this.#call = call;
    this.#flushes = flushes;
  }

  get #ledger() {
    return this.shared.ledger([{ name: ACCOUNT, quotas: { tokensPerHour: LIMIT }, prefix: 'q.' }]);
  }

  get reserved(): number {
    return this.state === 'granted' ? this.#call.reserved : 0;
  }

  get spent(): number {
    return this.state === 'committed' ? this.#call.spent : 0;
  }

  steps(deadlines: number): Step[] {
    const steps: Step[] = [];
    const add = (what: string, step: () => void): number => steps.push({ name: `${this.#name} ${what}`, run: step });
    if (this.state === 'new') add('reserves', () => this.#reserve());
    if (this.state === 'granted') add('commits', () => this.#commit());
    if (this.state === 'reserving' && deadlines > 0 && !this.isLate)
      add('reaches its deadline', () => this.#deadline.abort());
    if (this.state !== 'new' && this.#flushes > 0)
      add('flushes', () => {
        this.#flushes -= 1;
        this.#clock.flush();
      });
    return steps;
  }

  get isLate(): boolean {
    return this.#deadline.signal.aborted;
  }

  #reserve(): void {
    this.state = 'reserving';
    const op = { signal: this.#deadline.signal, deadline: Infinity, key: this.#name };
    const answered = (answer: Awaited<ReturnType<Ledger['reserve']>>): void => {
      this.state = answer.granted ? 'granted' : 'denied';
      this.#id = answer.granted ? answer.id : '';
    };
    const failed = (): void => {
      this.state = 'failed';
    };
    this.#ledger.reserve({ inputTokens: this.#call.reserved }, op).then(answered, failed);
  }

  #commit(): void {
    this.state = 'committed';
    void this.#ledger.commit(this.#id, { inputTokens: this.#call.spent });
  }
}

/** Everything that may happen next. */
function stepsOf(plan: Plan, store: SteppedStore, gateways: readonly Gateway[], loss: { isLost: boolean }): Step[] {
  const late = gateways.filter((gateway) => gateway.isLate).length;
  const lose = (): void => {
    loss.isLost = true;
    store.stored = undefined;
  };
  const canLose = plan.loses === true && !loss.isLost && store.stored !== undefined;
  return [
    ...gateways.flatMap((gateway) => gateway.steps((plan.deadlines ?? 0) - late)),
    ...store.calls.flatMap((call) =>
      call.outcomes
        .filter((outcome) => outcome === 'done' || store.faults > 0)
        .map((outcome) => ({ name: `${call.name}: ${outcome}`, run: () => call.end(outcome) })),
    ),
    ...(canLose ? [{ name: 'the record is lost', run: lose }] : []),
  ];
}

/** One run. `choices` decides its first steps and gets the number of alternatives of every step. */
async function run(plan: Plan, choices: { chosen: number; of: number }[]): Promise<void> {
  const store = new SteppedStore(plan.faults);
  const gateways = plan.calls.map((call, index) => new Gateway('ABC'[index] ?? '', call, plan.flushes ?? 0, store));
  const loss = { isLost: false };
  const trace: string[] = [];
  for (let depth = 0; ; depth += 1) {
    await setImmediate();
    if (plan.loses !== true) assertWithinLimit(store, gateways, trace);
    const steps = stepsOf(plan, store, gateways, loss);
    if (steps.length === 0) break;
    const choice = (choices[depth] ??= { chosen: 0, of: steps.length });
    assert.equal(choice.of, steps.length, `a run is repeatable: ${trace.join(', ')}`);
    const step = steps[choice.chosen];
    trace.push(step?.name ?? '');
    step?.run();
  }
  await closed(store, gateways);
  const total = gateways.reduce((sum, gateway) => sum + gateway.spent, 0);
  const spent = store.record?.spent.hour.counts.inputTokens ?? 0;
  const held = store.record?.held.hour.counts.inputTokens ?? 0;
  assert.equal(held, 0, `nothing stays held: ${trace.join(', ')}`);
  // The spend of a lost record is gone; the spend that its gateways had not written is not, and nothing is charged twice.
  assert.ok(loss.isLost ? spent <= total : spent === total, `${spent} of ${total} spent: ${trace.join(', ')}`);
}

function assertWithinLimit(store: SteppedStore, gateways: readonly Gateway[], trace: readonly string[]): void {
  const charged = gateways.reduce((sum, { reserved, spent }) => sum + reserved + spent, 0);
  assert.ok(charged <= LIMIT, `${charged} of ${LIMIT} after ${trace.join(', ')}`);
  const reserved = gateways.reduce((sum, gateway) => sum + gateway.reserved, 0);
  const held = store.record?.held.hour.counts.inputTokens ?? 0;
  assert.ok(held >= reserved, `the record holds ${held} for ${reserved} reserved after ${trace.join(', ')}`);
}

/** Closes the gateways over a store that answers. */
async function closed(store: SteppedStore, gateways: readonly Gateway[]): Promise<void> {
  const closing = { isDone: false };
  const ended = (): void => {
    closing.isDone = true;
  };
  Promise.all(gateways.map((gateway) => gateway.shared.close())).then(ended, ended);
  while (!closing.isDone) {
    await setImmediate();
    for (const call of Array.from(store.calls)) call.end('done');
  }
}

/** Runs every order of steps, and returns their number. */
async function everyOrder(plan: Plan): Promise<number> {
  const choices: { chosen: number; of: number }[] = [];
  for (let runs = 1; ; runs += 1) {
    await run(plan, choices);
    while (choices.length > 0) {
      const last = choices.at(-1);
      if (last !== undefined && last.chosen + 1 < last.of) {
        last.chosen += 1;
        break;
      }
      choices.pop();
    }
    if (choices.length === 0) return runs;
  }
}

describe('every order of the steps of a ledger', () => {
  const one = [{ reserved: 60, spent: 40 }];
  const two = [
    { reserved: 60, spent: 40 },
    { reserved: 60, spent: 50 },
  ];
  for (const [title, plan] of Object.entries<Plan>({
    'one gateway with a deadline, a flush and two faults': { calls: one, faults: 2, deadlines: 1, flushes: 1 },
    'two gateways with a deadline': { calls: two, faults: 0, deadlines: 1 },
    'two gateways with a fault': { calls: two, faults: 1 },
    'one gateway whose record is lost, with a deadline and a flush': {
      calls: one,
      faults: 1,
      deadlines: 1,
      flushes: 1,
      loses: true,
    },
    'two gateways whose record is lost': { calls: two, faults: 0, loses: true },
  })) {
    it(`nothing is charged twice, lost or left held: ${title}`, async (t) => {
      const runs = await everyOrder(plan);
      t.diagnostic(`${runs} runs`);
      assert.ok(runs > 10);
    });
  }
});
