import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Registry } from 'prom-client';
import { type MetricList, prometheusMetrics } from './metrics.ts';
import { GATEWAY_METRICS, OPERATOR_METRICS } from './temper-metrics.ts';

describe('metrics', () => {
  it('count, set and observe under the names of their list', async () => {
    const registry = new Registry();
    const metrics = prometheusMetrics(registry, GATEWAY_METRICS);
    metrics.count('temper_messages_total', { outcome: 'sent' });
    metrics.count('temper_messages_total', { outcome: 'sent' }, 2);
    metrics.count('temper_messages_total', { outcome: 'refused' }, 0);
    metrics.gauge('temper_bus_connected', {}, 1);
    metrics.observe('temper_message_duration_seconds', {}, 0.3);
    const text = await registry.metrics();
    assert.match(text, /^temper_messages_total\{outcome="sent"\} 3$/m);
    assert.match(text, /^temper_messages_total\{outcome="refused"\} 0$/m);
    assert.match(text, /^temper_bus_connected 1$/m);
    assert.match(text, /^temper_message_duration_seconds_bucket\{le="0.5"\} 1$/m);
  });

  it('are named by the rules: a total is a counter, a duration is in seconds, help ends with a full stop', () => {
    for (const list of [GATEWAY_METRICS, OPERATOR_METRICS] as MetricList[]) {
      for (const [name, { type, help }] of Object.entries(list)) {
        assert.equal(name.endsWith('_total'), type === 'counter', name);
        if (type === 'histogram') assert.ok(name.endsWith('_seconds'), name);
        assert.ok(name.startsWith('temper_') && help.endsWith('.'), name);
      }
    }
  });

  it('cannot be taken twice in one registry', () => {
    const registry = new Registry();
    prometheusMetrics(registry, OPERATOR_METRICS);
    assert.throws(() => prometheusMetrics(registry, OPERATOR_METRICS));
  });
});
