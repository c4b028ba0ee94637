import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parsePrometheusText } from '../../../test/support/prometheus-text.ts';
import type { Denial, Ledger, Reservation } from '../../ledger/port.ts';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import type { SharedLedger } from '../../nats/ledger/ledger.ts';
import { createRegistry, registerMetrics } from '../../telemetry/prometheus.ts';
import { GATEWAY_METRICS } from '../../telemetry/temper-metrics.ts';
import { countLedgerWrites, withLedgerMetrics } from './instrumented-ledger.ts';

const OP = { signal: new AbortController().signal, deadline: Infinity, key: 'k' };

function aLedger(reserve: () => Promise<Reservation | Denial>) {
  const clock = new FakeClock();
  const inner = { reserve, commit: async () => undefined, usage: assert.fail } as unknown as Ledger;
  const shared = { ledger: () => inner } as unknown as SharedLedger;
  const registry = createRegistry();
  const metrics = registerMetrics(registry, GATEWAY_METRICS);
  const ledger = withLedgerMetrics(shared, metrics, clock).ledger([{ name: 'agent/u', quotas: {}, prefix: '' }]);
  const sample = async (name: string) => parsePrometheusText(await registry.metrics()).samples.get(name);
  return { clock, metrics, ledger, sample };
}

describe('the metrics of the ledger', () => {
  it('the duration of each reservation is measured, also of one that fails', async () => {
    const { clock, ledger, sample } = aLedger(async () => {
      clock.skip(2_000);
      throw new Error('unreachable');
    });
    await assert.rejects(ledger.reserve({}, OP));
    assert.equal(await sample('temper_ledger_reservation_seconds_count'), 1);
    assert.equal(await sample('temper_ledger_reservation_seconds_sum'), 2);
  });

  it('a denial is counted by the scope and the field of its quota', async () => {
    const quota = 'TrustPolicy "of team a" spec.quotas.tokensPerDay';
    const { ledger, sample } = aLedger(async () => ({ granted: false, quota, limit: 1, used: 1, resumesAt: '' }));
    await ledger.reserve({}, OP);
    assert.equal(await sample('temper_quota_denials_total{scope="policy",quota="tokensPerDay"}'), 1);
  });

  it('the writes of the shared ledger and their conflicts are counted', async () => {
    const { metrics, sample } = aLedger(assert.fail);
    const count = countLedgerWrites(metrics);
    for (const conflicts of [0, 3]) count(conflicts);
    assert.equal(await sample('temper_ledger_writes_total'), 2);
    assert.equal(await sample('temper_ledger_conflicts_total'), 3);
  });
});
