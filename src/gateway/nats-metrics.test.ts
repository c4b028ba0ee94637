import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { TemperError } from '../lib/errors.ts';
import type { NatsAudit } from '../nats/audit.ts';
import type { Logger } from '../telemetry/log.ts';
import type { GatewayMetrics } from '../telemetry/temper-metrics.ts';
import { withAuditAlarm } from './nats-metrics.ts';

function setup(failure: TemperError) {
  const counts = new Map<string, number>();
  const errors: unknown[] = [];
  const audit = { append: () => Promise.reject(failure) } as unknown as NatsAudit;
  const metrics = {
    count: (name: string, _labels: object, by = 1) => counts.set(name, (counts.get(name) ?? 0) + by),
  } as unknown as GatewayMetrics;
  const log = { error: (fields: unknown) => errors.push(fields) } as unknown as Logger;
  const append = (evidence: 'observed' | 'reported') =>
    withAuditAlarm(audit, metrics, log).append(
      { namespace: 'team-a', agentUid: 'uid' },
      { action: 'tool.accepted', actor: 'agent/a', evidence, subject: 'x', facts: {} },
    );
  return { append, errors, rejected: () => counts.get('temper_audit_rejected_total') };
}

describe('the alarm for observed evidence', () => {
  it('an observed record that does not fit is counted and logged, and its error reaches the caller', async () => {
    const { append, errors, rejected } = setup(new TemperError('TEMPER_BUS_FULL', 'full'));
    await assert.rejects(append('observed'), { code: 'TEMPER_BUS_FULL' });
    assert.equal(rejected(), 1);
    assert.equal(errors.length, 1);
  });
  it('a reported record and an unreachable server raise no alarm', async () => {
    const full = setup(new TemperError('TEMPER_BUS_FULL', 'full'));
    await assert.rejects(full.append('reported'));
    const away = setup(new TemperError('TEMPER_BUS_UNAVAILABLE', 'away'));
    await assert.rejects(away.append('observed'));
    assert.deepEqual([full.rejected(), away.rejected(), full.errors.length + away.errors.length], [0, 0, 0]);
  });
});
