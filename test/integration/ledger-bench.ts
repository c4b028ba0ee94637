import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Clock, systemClock } from '../../src/lib/clock.ts';
import { isTemperError } from '../../src/lib/errors.ts';
import { randomIds } from '../../src/lib/ids.ts';
import type { Op } from '../../src/lib/operation.ts';
import type { Denial } from '../../src/ledger/port.ts';
import { openSharedLedger, type SharedLedger } from '../../src/nats/ledger.ts';
import type { BusConnection } from '../../src/nats/connection.ts';
import { documentsIn } from '../../src/nats/ledger-store.ts';
import { BUCKETS } from '../../src/nats/names.ts';

export const ACCOUNT = 'policy/team-a/standard';

/** A ledger on a connection of its own. */
export function openLedgerOn(connection: BusConnection, clock: Clock = systemClock): SharedLedger {
  return openSharedLedger({
    store: documentsIn(connection, BUCKETS.ledger),
    clock,
    ids: randomIds,
    random: Math.random,
    failed: () => undefined,
  });
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
