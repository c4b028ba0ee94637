import type { Denial } from '../../ledger/port.ts';
import type { SharedLedger } from '../../nats/ledger/ledger.ts';
import type { GatewayMetrics } from '../../telemetry/temper-metrics.ts';

/** The ledger with metrics: counts denials by the scope and field of the quota. */
export function withLedgerMetrics(ledger: SharedLedger, metrics: GatewayMetrics): SharedLedger {
  return {
    ledger(holders) {
      const inner = ledger.ledger(holders);
      return {
        async reserve(maximum, op) {
          const result = await inner.reserve(maximum, op);
          if (!result.granted) metrics.count('temper_quota_denials_total', labelsOf(result));
          return result;
        },
        commit: (id, used) => inner.commit(id, used),
        usage: () => inner.usage(),
      };
    },
    report: (account, opening) => ledger.report(account, opening),
    contention: () => ledger.contention(),
    close: () => ledger.close(),
    [Symbol.asyncDispose]: () => ledger[Symbol.asyncDispose](),
  };
}

/** Drops the policy's name from the quota: metric labels have few values. */
function labelsOf({ quota }: Denial): { scope: string; quota: string } {
  const field = quota.slice(quota.lastIndexOf('.') + 1);
  return { scope: quota.startsWith('spec.') ? 'agent' : 'policy', quota: field };
}
