import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { isTemperError } from '../../../src/lib/errors.ts';
import type { JetStreamConnection } from '../../../src/nats/connection/connection.ts';
import { createNatsInbox, type NatsInbox } from '../../../src/nats/inbox/inbox.ts';
import { STREAMS } from '../../../src/nats/jetstream/names.ts';
import { reconcileTopology } from '../../../src/nats/jetstream/topology.ts';
import { CLUSTER_STORE_BYTES, type NatsClusterFixture, startNatsCluster } from '../../support/nats/cluster-fixture.ts';
import { newMessage, newUid } from '../../support/nats/nats-fixture.ts';
import { withRetry } from '../../support/nats/retry.ts';
import { poll, pollAssertion, pollValue, StopPolling } from '../../support/poll.ts';

const TIMEOUT_MS = 60_000;
const AGENTS = 2;
const SERVERS = [0, 1, 2];
/** How long the leader is isolated; `make chaos` sets it higher. */
const ISOLATION_MS = Number(process.env['HANG_SECONDS'] ?? 10) * 1_000;
/** Writes, and acknowledgements, that the sides which work must get confirmed in each phase. */
const MESSAGES = 10;
/** A writer waits while so many of its messages were not delivered: the time to empty the inboxes does not grow with the isolation. */
const MAX_WAITING = 5;

type Phase = 'connected' | 'isolated' | 'healed';

/** A write or an acknowledgement that NATS confirmed, with the phases in which its last attempt began and ended. */
interface Confirmed {
  readonly kind: 'write' | 'ack';
  readonly side: number;
  readonly began: Phase;
  readonly ended: Phase;
}

/** Gateways at three servers that write messages and work on them. `phase` is the state of the network. */
class Exchange {
  phase: Phase = 'connected';
  isWriting = true;
  isReceiving = true;
  /** Attempts that failed with an error that callers repeat after. */
  readonly failed: Confirmed[] = [];
  readonly confirmed: Confirmed[] = [];
  /** Texts by agent and session, in the order of their writes and of their first deliveries. */
  readonly written = new Map<string, string[]>();
  readonly delivered = new Map<string, string[]>();
  readonly deliveredAgain: string[] = [];
  /** The messages in the stream by agent, session and text. */
  readonly sequences = new Map<string, Set<number>>();
  readonly #inboxes: readonly NatsInbox[];
  readonly #ended = new Set<string>();

  constructor(inboxes: readonly NatsInbox[]) {
    this.#inboxes = inboxes;
  }

  count(kind: Confirmed['kind'], phase: Phase, isOfSide: (side: number) => boolean): number {
    return this.confirmed.filter(
      (one) => one.kind === kind && one.began === phase && one.ended === phase && isOfSide(one.side),
    ).length;
  }

  /** Resolves when all messages were written and received. Throws what a writer or a receiver throws. */
  async run(uids: readonly string[]): Promise<void> {
    const sides = this.#inboxes.flatMap((inbox, side) => uids.map((uid) => ({ inbox, side, uid })));
    const writing = Promise.all(sides.map(({ inbox, side, uid }) => this.#write(inbox, side, uid)));
    const receiving = Promise.all(sides.map(({ inbox, side, uid }) => this.#receive(inbox, side, uid)));
    await Promise.all([receiving, writing.then(() => this.#whenEmpty(uids))]);
  }

  /** Ends the receivers when no message of the agents is left. */
  async #whenEmpty(uids: readonly string[]): Promise<void> {
    try {
      for (const uid of uids) {
        const depth = () => withRetry(() => this.#inbox(0).depth(uid));
        await pollValue('the end of all messages', depth, ({ pending, inFlight }) => pending + inFlight === 0);
      }
    } finally {
      this.isReceiving = false;
    }
  }

  #inbox(side: number): NatsInbox {
    const inbox = this.#inboxes[side];
    if (inbox === undefined) throw new Error(`no gateway at server ${side}`);
    return inbox;
  }

  /** Repeats the call until NATS confirms it. Other errors than those that callers repeat after are thrown. */
  async #confirm(kind: Confirmed['kind'], side: number, call: () => Promise<unknown>): Promise<void> {
    for (;;) {
      const began = this.phase;
      try {
        await call();
        this.confirmed.push({ kind, side, began, ended: this.phase });
        return;
      } catch (error) {
        if (!isTemperError(error) || error.retry !== 'backoff') throw error;
        this.failed.push({ kind, side, began, ended: this.phase });
        await sleep(50);
      }
    }
  }

  async #write(inbox: NatsInbox, side: number, uid: string): Promise<void> {
    const session = `s-${side}`;
    const texts: string[] = [];
    this.written.set(`${uid} ${session}`, texts);
    const waiting = () => texts.length - (this.delivered.get(`${uid} ${session}`)?.length ?? 0);
    for (let index = 0; this.isWriting; index += 1) {
      while (this.isWriting && waiting() >= MAX_WAITING) await sleep(50);
      const key = { uid: 'user', key: `${uid} ${session} ${index}` };
      await this.#confirm('write', side, () => inbox.publish(uid, key, newMessage(String(index), session)));
      texts.push(String(index));
      await sleep(50);
    }
  }

  async #receive(inbox: NatsInbox, side: number, uid: string): Promise<void> {
    while (this.isReceiving) {
      const delivery = await inbox
        .fetchNext(uid, 500, AbortSignal.timeout(TIMEOUT_MS))
        .catch(async (error: unknown) => {
          if (!isTemperError(error) || error.retry !== 'backoff') throw error;
          await sleep(50);
        });
      if (delivery === undefined) continue;
      const { message, coordinates } = delivery;
      const session = `${uid} ${message.session}`;
      const name = `${session} ${message.text}`;
      if (this.#ended.has(name)) this.deliveredAgain.push(name);
      this.delivered.set(session, [...new Set([...(this.delivered.get(session) ?? []), message.text])]);
      this.sequences.set(name, new Set([...(this.sequences.get(name) ?? []), coordinates.streamSequence]));
      try {
        await this.#confirm('ack', side, () => inbox.ack(coordinates));
        this.#ended.add(name);
      } catch (error) {
        // Another gateway got it meanwhile.
        const isLost = isTemperError(error, 'TEMPER_DELIVERY_LOST') || isTemperError(error, 'TEMPER_NOT_FOUND');
        assert.ok(isLost, String(error));
      }
    }
  }
}

describe('a partition between three servers', () => {
  let cluster: NatsClusterFixture;
  before(async () => {
    cluster = await startNatsCluster({ proxiedRoutes: true });
    const operator = await cluster.connect('operator');
    const options = { storeBytes: CLUSTER_STORE_BYTES, replicas: 3 };
    await pollAssertion('the streams', () => reconcileTopology(operator, options), { timeoutMs: TIMEOUT_MS });
  });
  after(async () => {
    await cluster?.[Symbol.asyncDispose]();
  });

  async function leaderOf(connection: JetStreamConnection): Promise<number> {
    const info = await withRetry(() => connection.request(() => connection.manager.streams.info(STREAMS.inbox)));
    return Number(/^temper-nats-(\d)$/.exec(info.cluster?.leader ?? '')?.[1] ?? Number.NaN);
  }

  it(`nothing is confirmed at a leader that is isolated for ${ISOLATION_MS / 1_000} seconds, the others go on, and nothing confirmed is lost or done twice`, {
    timeout: 300_000 + ISOLATION_MS,
  }, async () => {
    const connections = await Promise.all(SERVERS.map((server) => cluster.connect('gateway', server)));
    const rules = { ackWaitsMs: Array.from({ length: 50 }, () => 2_000) };
    const exchange = new Exchange(connections.map((connection) => createNatsInbox(connection, rules)));
    const uids = Array.from({ length: AGENTS }, newUid);
    const failures: unknown[] = [];
    const running = exchange.run(uids);
    running.catch((error: unknown) => failures.push(error));
    const confirmed = (kinds: readonly Confirmed['kind'][], phase: Phase, isOfSide: (side: number) => boolean) =>
      poll(`messages while the leader is ${phase}`, () => {
        if (failures.length > 0) throw new StopPolling('a writer or a receiver failed', { cause: failures[0] });
        return kinds.every((kind) => exchange.count(kind, phase, isOfSide) >= MESSAGES);
      });
    try {
      await confirmed(['write', 'ack'], 'connected', () => true);
      const leader = await leaderOf(await cluster.connect('operator'));
      const majority = await cluster.connect('operator', SERVERS.find((server) => server !== leader) ?? 0);
      cluster.routes?.isolate(leader);
      exchange.phase = 'isolated';
      const isolation = sleep(ISOLATION_MS);
      await confirmed(['write', 'ack'], 'isolated', (side) => side !== leader);
      assert.notEqual(await leaderOf(majority), leader);
      await isolation;
      assert.ok(connections[leader]?.state().connected, 'the isolated server serves its clients');
      await poll('a write that the isolated leader does not confirm', () =>
        exchange.failed.some(({ side, kind }) => side === leader && kind === 'write'),
      );
      for (const kind of ['write', 'ack'] as const)
        assert.equal(
          exchange.count(kind, 'isolated', (side) => side === leader),
          0,
          `a ${kind} without a quorum`,
        );
      exchange.phase = 'healed';
      cluster.routes?.heal();
      for (const side of SERVERS) await confirmed(['write'], 'healed', (one) => one === side);
    } finally {
      cluster.routes?.heal();
      exchange.isWriting = false;
      await running;
    }
    assert.deepEqual(exchange.deliveredAgain, []);
    assert.deepEqual(exchange.delivered, exchange.written);
    const storedTwice = [...exchange.sequences].filter(([, sequences]) => sequences.size > 1);
    assert.deepEqual(storedTwice, []);
  });
});
