import type { Spend } from '../../api/v1alpha1/trustpolicy.ts';
import type { Clock } from '../../lib/clock.ts';
import { policyAccount, spendSummary } from '../../nats/ledger-spend.ts';
import { documentsIn } from '../../nats/ledger-store.ts';
import { BUCKETS } from '../../nats/names.ts';
import type { SpendReader } from '../ports.ts';
import type { BusLink } from './link.ts';

/** Spend of policies from the shared ledger of the gateways. Undefined while NATS is unreachable. */
export function ledgerSpend(link: BusLink, clock: Clock): SpendReader {
  return {
    async ofPolicy(policyUid): Promise<Spend[] | undefined> {
      if (link.unavailableSince() !== undefined) return undefined;
      return spendSummary(documentsIn(link.now(), BUCKETS.ledger), clock, policyAccount(policyUid));
    },
  };
}
