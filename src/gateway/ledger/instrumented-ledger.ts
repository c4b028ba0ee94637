import type { Denial } from '../../ledger/port.ts';
import type { Clock } from '../../lib/clock.ts';
import type { SharedLedger } from '../../nats/ledger/ledger.ts';
import type { GatewayMetrics } from '../../telemetry/temper-metrics.ts';

/** The ledger with metrics: the duration of reservations, and denials by the scope and field of the quota. */
export function withLedgerMetrics(ledger: SharedLedger, metrics: GatewayMetrics, clock: Clock): SharedLedger {
  return {
    ledger(holders) {
      const inner = ledger.ledger(holders);
      return {
        async reserve(maximum, op) {
          const started = clock.monotonic();
          const result = await inner
            .reserve(maximum, op)
            .finally(() =>
              metrics.observe('temper_ledger_reservation_seconds', {}, (clock.monotonic() - started) / 1_000),
            );
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

/** Counts the writes of the ledger and their conflicts. */
export function countLedgerWrites(metrics: GatewayMetrics): (conflicts: number) => void {
  return (conflicts) => {
    metrics.count('temper_ledger_writes_total', {});
    metrics.count('temper_ledger_conflicts_total', {}, conflicts);
  };
}

/** Drops the policy's name from the quota: metric labels have few values. */
function labelsOf({ quota }: Denial): { scope: string; quota: string } {
  const field = quota.slice(quota.lastIndexOf('.') + 1);
  return { scope: quota.startsWith('spec.') ? 'agent' : 'policy', quota: field };
}
