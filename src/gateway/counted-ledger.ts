import type { Denial } from '../ledger/port.ts';
import type { SharedLedger } from '../nats/ledger.ts';
import type { GatewayMetrics } from '../telemetry/temper-metrics.ts';

/** The ledger, what it denies counted by whose quota it was. */
export function countedLedger(ledger: SharedLedger, metrics: GatewayMetrics): SharedLedger {
  return {
    ledger(holders) {
      const own = ledger.ledger(holders);
      return {
        async reserve(maximum, op) {
          const answer = await own.reserve(maximum, op);
          if (!answer.granted) metrics.count('temper_quota_denials_total', labelsOf(answer));
          return answer;
        },
        settle: (id, used) => own.settle(id, used),
        usage: () => own.usage(),
      };
    },
    report: (account, opening) => ledger.report(account, opening),
    contention: () => ledger.contention(),
    close: () => ledger.close(),
    [Symbol.asyncDispose]: () => ledger[Symbol.asyncDispose](),
  };
}

/** A policy's quota is told with the policy's name, which is no label. */
function labelsOf({ quota }: Denial): { scope: string; quota: string } {
  const field = quota.slice(quota.lastIndexOf('.') + 1);
  return { scope: quota.startsWith('spec.') ? 'agent' : 'policy', quota: field };
}
