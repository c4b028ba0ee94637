import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { jetstream } from '@nats-io/jetstream';
import { Kvm } from '@nats-io/kv';
import { connect } from '@nats-io/transport-node';
import { type Clock, systemClock } from '../../src/lib/clock.ts';
import { isTemperError } from '../../src/lib/errors.ts';
import { randomIds } from '../../src/lib/ids.ts';
import type { Op } from '../../src/lib/operation.ts';
import type { Denial } from '../../src/ledger/port.ts';
import { openSharedLedger, type SharedLedger } from '../../src/nats/ledger.ts';
import { kvLedgerStore } from '../../src/nats/ledger-store.ts';

export const BUCKET = 'temper-ledger';
export const ACCOUNT = 'policy/team-a/standard';

export interface Gateway extends AsyncDisposable {
  ledger: SharedLedger;
  /** Ends its connection without closing the ledger, as a crash would. */
  drop(): Promise<void>;
}

/** A ledger on a connection of its own. */
export async function openLedgerOn(url: string, clock: Clock = systemClock): Promise<Gateway> {
  const nats = await connect({
    servers: url,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 50,
    ignoreClusterUpdates: true,
  });
  const bucket = await new Kvm(jetstream(nats, { timeout: 2_000 })).create(BUCKET, { history: 1, allow_direct: false });
  const ledger = openSharedLedger({
    store: kvLedgerStore(bucket),
    clock,
    ids: randomIds,
    random: Math.random,
    failed: () => undefined,
  });
  return {
    ledger,
    drop: () => nats.close(),
    async [Symbol.asyncDispose]() {
      await ledger.close();
      await nats.close();
    },
  };
}

export function anOp(milliseconds = 60_000): Op {
  const deadline = performance.now() + milliseconds;
  return { signal: new AbortController().signal, deadline, key: randomIds.next('key') };
}

export interface Hammering {
  limit: number;
  /** Reservations at most, each of the parallel ones. */
  most: number;
  parallel: number;
}

export interface Hammered {
  granted: number;
  settled: number;
  denials: Denial[];
  reservations: number;
  unavailable: number;
}

/** Reserves and settles less until the account denies. An account that cannot be reached is asked again. */
export async function hammer(
  ledger: SharedLedger,
  { limit, most, parallel }: Hammering,
  tell: (what: 'granted' | 'settled', tokens: number) => void = () => undefined,
): Promise<Hammered> {
  const account = ledger.ledger([{ name: ACCOUNT, quotas: { tokensPerDay: limit }, prefix: 'spec.quotas.' }]);
  const sum: Hammered = { granted: 0, settled: 0, denials: [], reservations: 0, unavailable: 0 };
  const one = async (): Promise<void> => {
    for (let round = 0; round < most; round += 1) {
      const tokens = randomInt(1, 1_000);
      try {
        const answer = await account.reserve({ inputTokens: tokens, outputTokens: tokens }, anOp());
        if (!answer.granted) {
          sum.denials.push(answer);
          return;
        }
        sum.granted += 2 * tokens;
        sum.reservations += 1;
        tell('granted', 2 * tokens);
        await sleep(randomInt(0, 3));
        const used = randomInt(0, tokens + 1);
        await account.settle(answer.id, { inputTokens: tokens, outputTokens: used });
        sum.settled += tokens + used;
        tell('settled', tokens + used);
      } catch (error) {
        if (!isTemperError(error, 'TEMPER_LEDGER_UNAVAILABLE')) throw error;
        sum.unavailable += 1;
        await sleep(50);
      }
    }
  };
  await Promise.all(Array.from({ length: parallel }, one));
  return sum;
}
