import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import { type DeliveryCoordinates, InboxDeliveries } from './inbox-deliveries.ts';
import { inFlight, MAX_OPEN_SESSIONS, type OpenDelivery } from './delivery-state.ts';
import type { InboxStore } from './inbox-store.ts';
import { type Fault, MemoryInbox } from './memory-inbox-store.testing.ts';

const UID = 'agent';
/** The second one is longer than an acknowledgement needs, so its guard writes nothing. */
const ACK_WAITS_MS = [1_000, 40_000, 1_000];
const RUNS = Number(process.env['RUNS'] ?? 150);
const NEVER = new AbortController().signal;

function envelope(id: string, session: string): object {
  const deadline = new Date(1_000_000_000_000).toISOString();
  return {
    id,
    from: 'user',
    to: 'agent',
    session,
    text: id,
    root: id,
    depth: 0,
    deadline,
    time: new Date(0).toISOString(),
  };
}

const isLost = (error: unknown): boolean =>
  isTemperError(error, 'TEMPER_DELIVERY_LOST') || isTemperError(error, 'TEMPER_NOT_FOUND');

/** Ends of a delivery that a test has called, and how each call ended. */
interface Attempt {
  at: DeliveryCoordinates;
  session: string;
  /** An end was called; it may have had its effect although its response was lost. */
  wasCalled: boolean;
}

/** Two gateways over one inbox, and what its receivers have seen. */
class Setup {
  readonly inbox = new MemoryInbox();
  readonly clock = new FakeClock();
  readonly faults: Fault[];
  readonly gateways: InboxDeliveries[];
  readonly sessions = new Map<number, string>();
  readonly attempts: Attempt[] = [];
  /** Sequences of messages whose end a caller saw confirmed. */
  readonly confirmed = new Set<number>();
  /** Sequences whose deliveries began, with the confirmed ends of that moment. */
  readonly startedDeliveries = new Map<string, ReadonlySet<number>>();
  /** The messages of the agent that may be in flight at the same time. */
  readonly limit: number;
  readonly turn: () => Promise<void>;

  constructor(faults: Fault[], limit = 1, turn: () => Promise<void> = () => Promise.resolve()) {
    this.limit = limit;
    this.faults = [...faults];
    this.turn = turn;
    this.gateways = [this.newGateway(), this.newGateway()];
    this.inbox.onState = (next, previous) => {
      const nameOf = ({ sequence, deliveries }: OpenDelivery): string => `${sequence} ${deliveries}`;
      const before = new Set(previous.current.map(nameOf));
      const started = next.current.filter((one) => one.rejection === undefined && !before.has(nameOf(one)));
      for (const one of started) {
        const others = inFlight(next, this.clock.now().getTime()).filter(({ sequence }) => sequence !== one.sequence);
        assert.ok(others.length < this.limit, `${others.length} other messages are in flight`);
        assert.ok(!others.some(({ session }) => session === one.session), 'two messages of a session are in flight');
        this.assertInOrder(one.sequence);
        this.startedDeliveries.set(nameOf(one), new Set(this.confirmed));
      }
    };
  }

  newGateway(): InboxDeliveries {
    const store = this.inbox.client(() => this.faults.shift() ?? 'none', this.turn);
    // Nothing moves the clock while a call waits after a conflict.
    const clock = { now: this.clock.now, monotonic: this.clock.monotonic, sleep: () => Promise.resolve() };
    return new InboxDeliveries({ store, clock, rules: { ackWaitsMs: ACK_WAITS_MS }, changed: () => undefined });
  }

  send(session: string): void {
    const id = `m-${this.sessions.size + 1}`;
    this.sessions.set(this.inbox.add(envelope(id, session)), session);
  }

  /** Every earlier message of the session has ended. */
  assertInOrder(sequence: number): void {
    for (const [earlier, session] of this.sessions) {
      if (earlier >= sequence || session !== this.sessions.get(sequence)) continue;
      const hasEnded = !this.inbox.messages.has(earlier) || this.inbox.ended.get(`m-${earlier}`)?.sequence === earlier;
      assert.ok(hasEnded, `message ${sequence} of ${session} was delivered before ${earlier}`);
    }
  }

  async take(gateway: InboxDeliveries): Promise<void> {
    const { delivery } = await gateway.take(UID, this.limit, NEVER);
    if (delivery === undefined) return;
    const { coordinates: at, message } = delivery;
    const before = this.startedDeliveries.get(`${at.streamSequence} ${at.deliveries}`);
    assert.ok(before !== undefined, 'a delivery began without a stored state');
    assert.ok(!before.has(at.streamSequence), `message ${at.streamSequence} was delivered after its confirmed end`);
    this.attempts.push({ at, session: message.session, wasCalled: false });
  }

  /** Calls an end of a delivery; an earlier delivery of a message that was taken again must be refused. */
  async end(attempt: Attempt, call: () => Promise<void>, isFinal: boolean): Promise<void> {
    const { streamSequence, deliveries } = attempt.at;
    const isSuperseded = this.attempts.some(
      ({ at }) => at.streamSequence === streamSequence && at.deliveries > deliveries,
    );
    const { wasCalled } = attempt;
    attempt.wasCalled = true;
    try {
      await call();
    } catch (error) {
      assert.ok(isLost(error) || isTemperError(error, 'TEMPER_BUS_UNAVAILABLE'), String(error));
      return;
    }
    assert.ok(!isSuperseded || wasCalled, 'the end of an earlier delivery was accepted');
    if (isFinal) this.confirmed.add(streamSequence);
  }
}

type Command =
  | { do: 'send'; session: number }
  | { do: 'take' | 'restart' | 'release'; gateway: number }
  | { do: 'ack' | 'retry' | 'reject' | 'extend'; gateway: number; which: number }
  | { do: 'wait'; ms: number };

const gateway = fc.integer({ min: 0, max: 1 });
const which = fc.nat(7);
const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant('send' as const), session: fc.nat(3) }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('take' as const), gateway }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('ack' as const), gateway, which }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom('retry' as const, 'reject' as const, 'extend' as const),
      gateway,
      which,
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('restart' as const, 'release' as const), gateway }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.constantFrom(10, 400, 1_100, 31_000) }),
  },
);
const limit = fc.integer({ min: 1, max: 3 });
const fault: fc.Arbitrary<Fault> = fc.oneof(
  { weight: 12, arbitrary: fc.constant<Fault>('none') },
  { weight: 1, arbitrary: fc.constantFrom<Fault>('before', 'after') },
  { weight: 1, arbitrary: fc.constant<Fault>('stale') },
);

async function perform(setup: Setup, step: Command): Promise<void> {
  if (step.do === 'send') return setup.send(`s-${step.session}`);
  if (step.do === 'wait') return setup.clock.advance(step.ms);
  const gateway = setup.gateways[step.gateway];
  assert.ok(gateway !== undefined);
  if (step.do === 'restart') setup.gateways[step.gateway] = setup.newGateway();
  const unavailable = (error: unknown): void =>
    assert.ok(isTemperError(error, 'TEMPER_BUS_UNAVAILABLE') || isLost(error), String(error));
  if (step.do === 'take') return setup.take(gateway).catch(unavailable);
  if (step.do === 'release') {
    const release = async (): Promise<void> => {
      for (const current of await gateway.inFlight(UID)) await gateway.release(UID, current);
    };
    return release().catch(unavailable);
  }
  if (!('which' in step)) return;
  const attempt = setup.attempts.at(-1 - (step.which % Math.max(1, Math.min(3, setup.attempts.length))));
  if (attempt === undefined) return;
  const { at } = attempt;
  if (step.do === 'extend') return gateway.working(at).catch(unavailable);
  if (step.do === 'ack') return setup.end(attempt, () => gateway.ack(at), true);
  if (step.do === 'retry') return setup.end(attempt, () => gateway.retry(at, 50), false);
  await setup.end(attempt, () => gateway.reject(at, 'TEMPER_TURN_LIMIT', 'refused'), true);
}

/** Without faults, every message that has not ended is delivered and acknowledged, or is a dead letter. */
async function drain(setup: Setup): Promise<void> {
  setup.faults.length = 0;
  const last = setup.newGateway();
  for (let round = 0; setup.inbox.messages.size > 0; round += 1) {
    assert.ok(round < 500, `${setup.inbox.messages.size} messages are never delivered`);
    const taken = setup.attempts.length;
    await setup.take(last);
    const attempt = setup.attempts.at(-1);
    if (setup.attempts.length === taken || attempt === undefined) await setup.clock.advance(31_000);
    else await setup.end(attempt, () => last.ack(attempt.at), true);
  }
  for (const sequence of setup.sessions.keys()) {
    const ended = setup.inbox.ended.get(`m-${sequence}`);
    assert.ok(ended !== undefined, `message ${sequence} is lost`);
    if (ended.outcome === 'rejected') assert.ok(setup.inbox.deadLetters.has(sequence), `no dead letter of ${sequence}`);
  }
}

describe('deliveries by several gateways', () => {
  it('no message is lost, delivered after its confirmed end or out of order, whatever fails between two requests', async () => {
    const commands = fc.array(command, { minLength: 5, maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(commands, limit, fc.array(fault, { maxLength: 200 }), async (steps, most, faults) => {
        const setup = new Setup(faults, most);
        for (const step of steps) {
          if (step.do === 'take') setup.inbox.lag();
          await perform(setup, step);
        }
        await drain(setup);
      }),
      { numRuns: RUNS },
    );
  });

  it('the guarantees hold for calls that run at the same time, in any order of their requests', async () => {
    const steps = command.filter((one) => one.do !== 'wait');
    const batches = fc.array(
      fc.tuple(fc.array(steps, { minLength: 2, maxLength: 4 }), fc.constantFrom(0, 400, 1_100)),
      {
        minLength: 3,
        maxLength: 15,
      },
    );
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        batches,
        limit,
        fc.array(fault, { maxLength: 60 }),
        async (scheduler, all, most, faults) => {
          let isScheduled = true;
          const turn = (): Promise<void> => (isScheduled ? scheduler.schedule(Promise.resolve()) : Promise.resolve());
          const setup = new Setup(faults, most, turn);
          for (const [batch, waitMs] of all) {
            const running = Promise.all(batch.map((step) => perform(setup, step)));
            await scheduler.waitFor(running);
            await setup.clock.advance(waitMs);
          }
          isScheduled = false;
          await drain(setup);
        },
      ),
      { numRuns: RUNS / 2 },
    );
  });

  it('while the maximum of sessions wait for a redelivery, no further session gets a message', async () => {
    const setup = new Setup([]);
    const [one] = setup.gateways;
    assert.ok(one !== undefined);
    for (let session = 0; session < MAX_OPEN_SESSIONS + 2; session += 1) setup.send(`s-${session}`);
    const takeText = async (): Promise<string | undefined> => (await one.take(UID, 1, NEVER)).delivery?.message.text;
    for (let index = 1; index <= MAX_OPEN_SESSIONS; index += 1) {
      const { delivery } = await one.take(UID, 1, NEVER);
      assert.ok(delivery !== undefined);
      // The first one is due last.
      await one.retry(delivery.coordinates, index === 1 ? 9_000 : 5_000);
    }
    assert.deepEqual(await one.take(UID, 1, NEVER), { dueTime: 5_000 });
    await setup.clock.advance(5_000);
    assert.equal(await takeText(), 'm-2');
    const [current] = await one.inFlight(UID);
    assert.ok(current !== undefined);
    await one.ack({ agentUid: UID, message: 'm-2', streamSequence: current.sequence, deliveries: current.deliveries });
    // One session is free, and a redelivery that is due is older than the messages of further sessions.
    assert.equal(await takeText(), 'm-3');
    await drain(setup);
  });

  it('a redelivery that has ended already does not hide an older message that no gateway has seen', async () => {
    const setup = new Setup([]);
    for (let session = 1; session <= MAX_OPEN_SESSIONS + 1; session += 1) setup.send(`s-${session}`);
    const waiting = Array.from({ length: MAX_OPEN_SESSIONS }, (_, index) => {
      const sequence = index + 2;
      return {
        session: `s-${sequence}`,
        sequence,
        message: `m-${sequence}`,
        deliveries: 1,
        until: index === 0 ? 0 : 60_000,
      };
    });
    setup.inbox.state = { state: { current: [], waiting }, revision: 1 };
    // A gateway recorded the end and stopped before it removed the delivery.
    setup.inbox.ended.set('m-2', { sequence: 2, deliveries: 1, outcome: 'acked' });
    const { delivery } = await setup.newGateway().take(UID, 1, NEVER);
    assert.equal(delivery?.message.text, 'm-1');
  });

  it('a gateway reads each message of a waiting session once, however often it looks', async () => {
    const inbox = new MemoryInbox();
    const clock = new FakeClock();
    let reads = 0;
    const store = inbox.client();
    const counted = {
      ...store,
      async *messages(uid: string, from: number) {
        for await (const message of store.messages(uid, from)) {
          reads += 1;
          yield message;
        }
      },
    };
    const rules = { ackWaitsMs: ACK_WAITS_MS };
    const one = new InboxDeliveries({ store: counted, clock, rules, changed: () => undefined });
    const take = async (): Promise<DeliveryCoordinates> => {
      const { delivery } = await one.take(UID, 1, NEVER);
      assert.ok(delivery !== undefined);
      return delivery.coordinates;
    };
    for (let index = 0; index < 900; index += 1) inbox.add(envelope(`a-${index}`, 'a'));
    await one.retry(await take(), 60_000);
    for (let round = 0; round < 50; round += 1) {
      inbox.add(envelope(`b-${round}`, 'b'));
      const at = await take();
      assert.equal(at.message, `b-${round}`);
      await one.ack(at);
    }
    assert.ok(reads <= 900 + 2 * 50 + 1, `${reads} messages were read`);
    await clock.advance(60_000);
    for (let index = 0; index < 3; index += 1) {
      const at = await take();
      assert.equal(at.message, `a-${index}`);
      await one.ack(at);
    }
  });
});

describe('the guard of an acknowledgement', () => {
  /** The states written by the acknowledgement of a delivery of this age, while another gateway asks for a message. */
  async function writesOfAck(ackWaitMs: number, ageMs: number): Promise<number> {
    const inbox = new MemoryInbox();
    const clock = new FakeClock();
    const rules = { ackWaitsMs: [ackWaitMs] };
    const open = () => new InboxDeliveries({ store: inbox.client(), clock, rules, changed: () => undefined });
    const [one, other] = [open(), open()];
    inbox.add(envelope('m', 's'));
    const { delivery } = await one.take(UID, 1, NEVER);
    assert.ok(delivery !== undefined);
    await clock.advance(ageMs);
    const { revision } = inbox.state;
    await one.ack(delivery.coordinates, async () => {
      await clock.advance(29_000);
      assert.equal((await other.take(UID, 1, NEVER)).delivery, undefined, 'delivered while its end is stored');
    });
    return inbox.state.revision - revision;
  }

  it('a delivery that lasts long enough is read, another one is extended', async () => {
    assert.equal(await writesOfAck(60_000, 30_000), 1);
    assert.equal(await writesOfAck(60_000, 30_001), 2);
    assert.equal(await writesOfAck(1_000, 0), 2);
  });

  it('a delivery that another gateway ended since is refused', async () => {
    const inbox = new MemoryInbox();
    const clock = new FakeClock();
    const rules = { ackWaitsMs: [60_000, 60_000] };
    const open = () => new InboxDeliveries({ store: inbox.client(), clock, rules, changed: () => undefined });
    const [one, other] = [open(), open()];
    inbox.add(envelope('m', 's'));
    const { delivery } = await one.take(UID, 1, NEVER);
    assert.ok(delivery !== undefined);
    for (const current of await other.inFlight(UID)) await other.release(UID, current);
    let isStored = false;
    const ack = one.ack(delivery.coordinates, async (isCurrent) => {
      await isCurrent;
      isStored = true;
    });
    await assert.rejects(ack, isLost);
    assert.equal(isStored, false);
  });

  it('a reply is prepared while the delivery is looked up, and an error of its storage ends no message', async () => {
    const inbox = new MemoryInbox();
    const prepared = Promise.withResolvers<void>();
    let isAcknowledging = false;
    const store = inbox.client(undefined, async () => (isAcknowledging ? prepared.promise : undefined));
    const one = new InboxDeliveries({
      store,
      clock: new FakeClock(),
      rules: { ackWaitsMs: [60_000] },
      changed: () => undefined,
    });
    inbox.add(envelope('m', 's'));
    const { delivery } = await one.take(UID, 1, NEVER);
    assert.ok(delivery !== undefined);
    isAcknowledging = true;
    const failing = one.ack(delivery.coordinates, async (isCurrent) => {
      prepared.resolve();
      await isCurrent;
      throw new TemperError('TEMPER_NOT_FOUND', 'the reply is not stored');
    });
    await assert.rejects(failing, { message: 'the reply is not stored' });
    assert.deepEqual([inbox.messages.size, inbox.ended.size], [1, 0]);
    await one.ack(delivery.coordinates);
    assert.deepEqual([inbox.messages.size, inbox.ended.size], [0, 1]);
  });
});

describe('the messages of several sessions', () => {
  it('one request finds the next message of the only session with messages, and of the first of several that had their turn', async () => {
    const inbox = new MemoryInbox();
    let requests = 0;
    const store = inbox.client(() => {
      requests += 1;
      return 'none';
    });
    const rules = { ackWaitsMs: [60_000] };
    const one = new InboxDeliveries({ store, clock: new FakeClock(), rules, changed: () => undefined });
    const taken: string[] = [];
    const costs: number[] = [];
    const work = async (): Promise<void> => {
      requests = 0;
      const { delivery } = await one.take(UID, 1, NEVER);
      costs.push(requests);
      assert.ok(delivery !== undefined);
      taken.push(delivery.message.id);
      await one.ack(delivery.coordinates);
    };
    for (const [id, session] of ['a', 'b', 'a', 'b'].entries()) {
      inbox.add(envelope(`m-${id}`, session));
      await work();
    }
    // While the first one waited for its turn, a session without one had it.
    for (const [id, session] of ['a', 'c', 'b'].entries()) inbox.add(envelope(`n-${id}`, session));
    for (let left = inbox.messages.size; left > 0; left -= 1) await work();
    assert.deepEqual(taken, ['m-0', 'm-1', 'm-2', 'm-3', 'n-1', 'n-0', 'n-2']);
    inbox.add(envelope('o-0', 'a'));
    inbox.add(envelope('o-1', 'a'));
    assert.ok((await one.take(UID, 2, NEVER)).delivery !== undefined);
    requests = 0;
    assert.equal((await one.take(UID, 2, NEVER)).delivery, undefined);
    // The remembered state may be old; one that is not, found nothing before.
    assert.equal(requests, 2, 'the inbox and the state');
    // The first one also reads the state. Of the others each one reads the inbox, writes the state and looks whether it has ended.
    assert.deepEqual(costs.slice(0, 5), [4, 3, 3, 3, 3]);
  });

  it('a session in flight delays no other one up to the limit, and each delivery has its own end', async () => {
    const setup = new Setup([], 2);
    const [one, two] = setup.gateways;
    assert.ok(one !== undefined && two !== undefined);
    for (const session of ['a', 'a', 'b', 'c']) setup.send(session);
    const take = async (from: InboxDeliveries) => (await from.take(UID, 2, NEVER)).delivery;
    const [first, second] = [await take(one), await take(two)];
    assert.deepEqual([first?.message.id, second?.message.id], ['m-1', 'm-3']);
    assert.equal(await take(one), undefined, 'the limit');
    assert.ok(first !== undefined && second !== undefined);
    await setup.clock.advance(600);
    await two.working(second.coordinates);
    await setup.clock.advance(600);
    // The time of the first one has passed; the second one was extended.
    const again = await take(two);
    assert.deepEqual([again?.message.id, again?.coordinates.deliveries], ['m-1', 2]);
    await assert.rejects(one.ack(first.coordinates), isLost);
    await one.ack(second.coordinates);
    assert.equal((await take(one))?.message.id, 'm-4');
    assert.equal((await one.inFlight(UID)).length, 2);
    assert.ok(again !== undefined);
    await two.reject(again.coordinates, 'TEMPER_TURN_LIMIT', 'refused');
    assert.equal((await take(two))?.message.id, 'm-2', 'the session goes on after the end of its message');
    await drain(setup);
  });

  it('sessions with many messages do not delay a session with one beyond one message of each', async () => {
    const setup = new Setup([], 2);
    const [one] = setup.gateways;
    assert.ok(one !== undefined);
    for (let round = 0; round < 10; round += 1) for (const session of ['a', 'b', 'c']) setup.send(session);
    setup.send('late');
    const order: string[] = [];
    const takeAndEnd = async (): Promise<void> => {
      const { delivery } = await one.take(UID, 2, NEVER);
      assert.ok(delivery !== undefined);
      order.push(delivery.message.session);
      await one.ack(delivery.coordinates);
    };
    for (let taken = 0; taken < 31; taken += 1) await takeAndEnd();
    assert.deepEqual(order.slice(0, 8), ['a', 'b', 'c', 'late', 'a', 'b', 'c', 'a']);
    assert.equal(setup.inbox.messages.size, 0);
  });
});

describe('a replica that lags', () => {
  it('a message behind one of a session that waits is found in the same look', async () => {
    const inbox = new MemoryInbox();
    let lists = 0;
    const store = inbox.client();
    const lagging: InboxStore = {
      ...store,
      async *messages(uid, from) {
        lists += 1;
        for await (const message of store.messages(uid, from)) if (lists > 1 || message.sequence < 3) yield message;
      },
    };
    const deps = { clock: new FakeClock(), rules: { ackWaitsMs: [60_000] }, changed: () => undefined };
    const [one, other] = [lagging, store].map((each) => new InboxDeliveries({ store: each, ...deps }));
    for (const [id, session] of ['a', 'a', 'b'].entries()) inbox.add(envelope(`m-${id}`, session));
    assert.equal((await other?.take(UID, 2, NEVER))?.delivery?.message.id, 'm-0');
    assert.equal((await one?.take(UID, 2, NEVER))?.delivery?.message.id, 'm-2');
  });
});

describe('a parked message', () => {
  async function parkedSetup() {
    const setup = new Setup([]);
    const [first, second] = setup.gateways;
    assert.ok(first !== undefined && second !== undefined);
    setup.inbox.add(envelope('waits', 's-1'));
    setup.inbox.add(envelope('behind', 's-1'));
    setup.inbox.add(envelope('other', 's-2'));
    const taken = await first.take(UID, 1, NEVER);
    assert.equal(taken.delivery?.message.id, 'waits');
    const at = taken.delivery.coordinates;
    await first.park(at, setup.clock.now().getTime() + 100_000);
    return { setup, first, second, at };
  }

  it('a parked message delays its session and no other one, and any gateway resumes it', async () => {
    const { setup, first, second, at } = await parkedSetup();
    await first.park(at, 0);
    assert.deepEqual(await second.parked(UID), [{ message: 'waits', session: 's-1' }]);
    const other = await second.take(UID, 1, NEVER);
    assert.equal(other.delivery?.message.id, 'other');
    await second.ack(other.delivery.coordinates);
    assert.equal((await second.take(UID, 1, NEVER)).delivery, undefined);
    assert.equal(await second.resume(UID, 'another'), false);
    assert.equal(await second.resume(UID, 'waits'), true);
    assert.equal(await first.resume(UID, 'waits'), false);
    const resumed = await first.take(UID, 1, NEVER);
    assert.deepEqual([resumed.delivery?.message.id, resumed.delivery?.redelivery], ['waits', 'parked']);
    await assert.rejects(first.ack(at), isLost);
    assert.ok(setup.inbox.deadLetters.size === 0);
  });

  it('the time of a parked message does not count against its deadline, and a parked delivery is no failed attempt', async () => {
    const { setup, first } = await parkedSetup();
    for (let round = 0; round < 2 * ACK_WAITS_MS.length; round += 1) {
      await setup.clock.advance(50_000);
      await first.resume(UID, 'waits');
      const { delivery } = await first.take(UID, 1, NEVER);
      assert.equal(delivery?.message.id, 'waits');
      const waited = 1_000_000_000_000 + (round + 1) * 50_000;
      assert.equal(Date.parse(delivery.message.deadline), waited);
      await first.park(delivery.coordinates, setup.clock.now().getTime() + 100_000);
    }
    assert.equal(setup.inbox.deadLetters.size, 0);
    await setup.clock.advance(100_000);
    assert.equal(
      (await first.take(UID, 1, NEVER)).delivery?.message.id,
      'waits',
      'its time has come without a decision',
    );
  });
});
