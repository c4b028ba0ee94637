import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Clock, systemClock } from '../../../src/lib/clock.ts';
import { isTemperError } from '../../../src/lib/errors.ts';
import { ulids } from '../../../src/lib/ids.ts';
import type { Denial } from '../../../src/ledger/port.ts';
import { openSharedLedger, type SharedLedger } from '../../../src/nats/ledger/ledger.ts';
import type { JetStreamConnection } from '../../../src/nats/connection/connection.ts';
import { createDocumentStore } from '../../../src/nats/jetstream/document-store.ts';
import { BUCKETS } from '../../../src/nats/jetstream/names.ts';
import { callOptions } from '../call-options.ts';

export const ACCOUNT = 'policy/team-a/standard';

/** Opens a ledger over the connection. */
export function openLedgerOver(connection: JetStreamConnection, clock: Clock = systemClock): SharedLedger {
  return openSharedLedger({
    store: createDocumentStore(connection, BUCKETS.ledger),
    clock,
    ids: ulids,
    random: Math.random,
    onError: () => undefined,
  });
}

export interface LoadOptions {
  limit: number;
  /** Per parallel loop. */
  maxReservations: number;
  parallel: number;
}

export interface LoadTotals {
  granted: number;
  settled: number;
  denials: Denial[];
  reservations: number;
  unavailable: number;
}

/** Reserves tokens and commits fewer, until the account denies a reservation. Retries while the account is unavailable. */
export async function spendUntilDenied(
  ledger: SharedLedger,
  { limit, maxReservations, parallel }: LoadOptions,
  report: (what: 'granted' | 'settled', tokens: number) => void = () => undefined,
): Promise<LoadTotals> {
  const account = ledger.ledger([{ name: ACCOUNT, quotas: { tokensPerDay: limit }, prefix: 'spec.quotas.' }]);
  const totals: LoadTotals = { granted: 0, settled: 0, denials: [], reservations: 0, unavailable: 0 };
  const spend = async (): Promise<void> => {
    for (let round = 0; round < maxReservations; round += 1) {
      const tokens = randomInt(1, 1_000);
      try {
        const answer = await account.reserve({ inputTokens: tokens, outputTokens: tokens }, callOptions());
        if (!answer.granted) {
          totals.denials.push(answer);
          return;
        }
        totals.granted += 2 * tokens;
        totals.reservations += 1;
        report('granted', 2 * tokens);
        await sleep(randomInt(0, 3));
        const used = randomInt(0, tokens + 1);
        await account.commit(answer.id, { inputTokens: tokens, outputTokens: used });
        totals.settled += tokens + used;
        report('settled', tokens + used);
      } catch (error) {
        if (!isTemperError(error, 'TEMPER_LEDGER_UNAVAILABLE')) throw error;
        totals.unavailable += 1;
        await sleep(50);
      }
    }
  };
  await Promise.all(Array.from({ length: parallel }, spend));
  return totals;
}
