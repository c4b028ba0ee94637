import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { systemClock } from '../../../lib/clock.ts';
import { type CurrentDelivery, type DeliveryState, EMPTY_STATE } from '../../../nats/inbox/delivery-state.ts';
import type { StoredDeliveries } from '../../../nats/inbox/nats-inbox-store.ts';
import { aPolicy, anAgent, anObservation, statusOf } from '../../agent/observed.testing.ts';
import { StatusThrottle } from '../../agent/deferral/status-throttle.ts';
import type { AgentHeartbeat } from '../../ports.ts';
import { scheduleCondition } from '../../schedules/schedule-facts.ts';
import { HEARTBEAT_TIMEOUT_MS, type Heartbeat, heartbeatOf } from './heartbeat.ts';
import { Heartbeats } from './heartbeats.ts';

const NOW = Date.parse('2031-05-05T10:20:00Z');
const UID = anAgent().metadata.uid;
const LONG_AGO = NOW - HEARTBEAT_TIMEOUT_MS;

function delivery(until: number, change: Partial<CurrentDelivery> = {}): CurrentDelivery {
  return { session: 's-1', sequence: 1, message: 'm-1', deliveries: 1, until, ...change };
}

const inFlight = (until: number): DeliveryState => ({ current: [delivery(until)], waiting: [] });
const waiting = (until: number): DeliveryState => ({ current: [], waiting: [delivery(until, { cause: 'retry' })] });

describe('the heartbeat of an agent with messages', () => {
  const cases: readonly (readonly [what: string, Heartbeat, state: DeliveryState, written: number, known: number])[] = [
    ['a delivery that was extended a moment ago', 'Reported', inFlight(NOW + 1), NOW - 1, 0],
    ['a delivery whose time has just passed', 'Reported', inFlight(NOW - 1), LONG_AGO + 1, 0],
    ['a delivery without a report for three minutes', 'Missed', inFlight(NOW - 60_000), LONG_AGO, LONG_AGO],
    ['a delivery that this process does not watch for long', 'Unknown', inFlight(NOW - 60_000), 0, LONG_AGO + 1],
    ['a message that waits for its repetition or an approval', 'Reported', waiting(NOW + 1), LONG_AGO, 0],
    ['a message that is due again', 'Reported', waiting(LONG_AGO + 1), LONG_AGO, 0],
    ['a message that is due again and that no pod takes', 'Missed', waiting(LONG_AGO), LONG_AGO - 1, 0],
    ['a message that no pod took', 'Missed', EMPTY_STATE, 0, LONG_AGO],
    ['a message of which the operator does not know for long', 'Unknown', EMPTY_STATE, 0, LONG_AGO + 1],
  ];
  for (const [what, expected, state, writtenAt, knownSince] of cases) {
    it(`${what} is ${expected}`, () => {
      assert.equal(heartbeatOf({ state, writtenAt, knownSince }, NOW), expected);
    });
  }
});

describe('the heartbeats that the operator observes', () => {
  function observer() {
    const heartbeats = new Heartbeats();
    const reads: (readonly string[])[] = [];
    const setup = {
      now: NOW,
      stored: [] as StoredDeliveries[],
      reads,
      look: (messages: number): Promise<void> =>
        heartbeats.refresh({ [UID]: messages, other: 0 }, setup.now, async (uids) => {
          reads.push(uids);
          return setup.stored;
        }),
      /** The looks of three minutes. */
      lookOn: async (): Promise<void> => {
        const end = setup.now + HEARTBEAT_TIMEOUT_MS;
        while (setup.now < end) {
          setup.now += 10_000;
          await setup.look(1);
        }
      },
      state: (spec = {}, policy = {}): string | undefined => {
        const found = heartbeats.of(anAgent(spec), aPolicy(policy));
        return typeof found === 'object' ? found.reason : found;
      },
    };
    return setup;
  }

  it('an agent whose pod hangs is silent after three minutes, and no longer with the next report or without messages', async () => {
    const setup = observer();
    assert.equal(setup.state(), undefined, 'nothing is known before the first look');
    setup.stored = [{ agentUid: UID, state: inFlight(NOW + 60_000), writtenAt: NOW }];
    await setup.look(1);
    assert.equal(setup.state(), 'Reported');
    await setup.lookOn();
    assert.equal(setup.state(), 'HeartbeatMissed');
    assert.equal(setup.state({ suspend: true }), 'Reported');
    assert.equal(setup.state({}, { suspend: true }), 'Reported');
    setup.stored = [{ agentUid: UID, state: inFlight(setup.now + 60_000), writtenAt: setup.now }];
    await setup.look(1);
    assert.equal(setup.state(), 'Reported');
    await setup.lookOn();
    await setup.look(0);
    assert.equal(setup.state(), 'Reported');
  });

  it('an agent that works is read once in three minutes, and one without messages never', async () => {
    const setup = observer();
    for (let round = 0; round < 18; round += 1) {
      setup.stored = [{ agentUid: UID, state: inFlight(setup.now + 60_000), writtenAt: setup.now }];
      await setup.look(1);
      setup.now += 10_000;
    }
    assert.deepEqual(setup.reads, [[UID]]);
    await setup.look(0);
    assert.equal(setup.reads.length, 1);
  });

  it('a new leader leaves the condition of an agent that never took a message as it is', async () => {
    const setup = observer();
    await setup.look(1);
    assert.equal(setup.state(), undefined);
    await setup.lookOn();
    assert.equal(setup.state(), 'HeartbeatMissed');
  });

  it('the time in which NATS is away counts for no agent, because no pod could report', async () => {
    const setup = observer();
    setup.stored = [{ agentUid: UID, state: inFlight(NOW + 60_000), writtenAt: NOW }];
    await setup.look(1);
    setup.now += 10 * HEARTBEAT_TIMEOUT_MS;
    await setup.look(1);
    assert.equal(setup.state(), undefined);
    await setup.lookOn();
    assert.equal(setup.state(), 'HeartbeatMissed');
  });
});

describe('the condition Responsive', () => {
  const missed: AgentHeartbeat = { type: 'Responsive', status: 'False', reason: 'HeartbeatMissed', message: 'm' };
  const reasonWith = (heartbeat: AgentHeartbeat | undefined, before: readonly AgentHeartbeat[]) => {
    const conditions = before.map((one) => ({ ...(one as object), lastTransitionTime: '2031-05-05T10:00:00Z' }));
    const runtimeState = heartbeat === undefined ? {} : { heartbeat };
    const status = statusOf(anObservation({ agent: anAgent({}, { conditions }), runtimeState }));
    return status.conditions?.find(({ type }) => type === 'Responsive')?.reason;
  };

  it('the condition appears, stays while nothing is known, and is removed', () => {
    assert.equal(reasonWith(missed, []), 'HeartbeatMissed');
    assert.equal(reasonWith(undefined, [missed]), 'HeartbeatMissed');
    assert.equal(reasonWith('Reported', [missed]), undefined);
  });

  it('only an agent whose condition changes is reconciled', () => {
    const throttle = new StatusThrottle(systemClock);
    const having = anAgent({}, { conditions: [missed] });
    assert.equal(throttle.isChanged(anAgent(), { heartbeat: missed }), true);
    assert.equal(throttle.isChanged(having, { heartbeat: missed }), false);
    assert.equal(throttle.isChanged(having, { heartbeat: 'Reported' }), true);
    assert.equal(throttle.isChanged(anAgent(), { heartbeat: 'Reported' }), false);
  });
});

describe('the condition of a schedule whose runs fail', () => {
  it('a persistent schedule goes on and says so, and another one stops', () => {
    const found = (failures: number, persistent?: true) => {
      const { status, reason } = scheduleCondition({ failures, ...(persistent && { persistent }) }) ?? {};
      return [status, reason];
    };
    assert.deepEqual(found(4, true), [undefined, undefined]);
    assert.deepEqual(found(5, true), ['True', 'RunsFail']);
    assert.deepEqual(found(50, true), ['True', 'RunsFail']);
    assert.deepEqual(found(5), ['False', 'TooManyFailures']);
  });
});
