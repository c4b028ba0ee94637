import type { Spend } from '../../api/v1alpha1/trustpolicy.ts';
import type { Clock } from '../../lib/clock.ts';
import { policyAccount, spendSummary } from '../../nats/ledger/spend-summary.ts';
import { createDocumentStore } from '../../nats/jetstream/document-store.ts';
import { BUCKETS } from '../../nats/jetstream/names.ts';
import type { SpendReader } from '../ports.ts';
import type { NatsLink } from './nats-link.ts';

/** Spend of policies from the shared ledger of the gateways. Undefined while NATS is unreachable. */
export function ledgerSpendReader(link: NatsLink, clock: Clock): SpendReader {
  return {
    async ofPolicy(policyUid): Promise<Spend[] | undefined> {
      if (link.unavailableSince() !== undefined) return undefined;
      return spendSummary(createDocumentStore(link.current(), BUCKETS.ledger), clock, policyAccount(policyUid));
    },
  };
}
