import { parentPort, workerData } from 'node:worker_threads';
import { flood } from '../../../test/support/gateway/neighbours/flood.ts';
import { Tenant, type TenantIdentity } from '../../../test/support/gateway/neighbours/tenant.ts';
import { ATTACKS } from './attacks.ts';

/** What the thread gets. */
export interface AttackOrder {
  readonly attack: string;
  readonly attacker: TenantIdentity;
  readonly deliveryToken: string;
}

/** Calls that an attacker makes in one go, and how many at a time. */
const CALLS = 64;
const CONCURRENCY = 16;

/** Attacks until the first message of its parent, in an event loop of its own: its work must not delay what is measured. */
async function attackWithoutEnd({ attack, attacker, deliveryToken }: AttackOrder): Promise<void> {
  const over = new AbortController();
  parentPort?.once('message', () => over.abort());
  const begin = ATTACKS[attack];
  if (begin === undefined) throw new Error(`there is no attack "${attack}"`);
  using tenant = Tenant.of(attacker);
  const call = begin(tenant, deliveryToken);
  for (let first = 0; !over.signal.aborted; first += CALLS)
    await flood(CALLS, (index) => call(first + index), CONCURRENCY);
}

await attackWithoutEnd(workerData as AttackOrder);
