import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parsePrometheusText } from '../../test/support/prometheus-text.ts';
import type { MetricTable } from './metrics.ts';
import { createRegistry, registerMetrics } from './prometheus.ts';
import { GATEWAY_METRICS, OPERATOR_METRICS } from './temper-metrics.ts';

describe('registered metrics', () => {
  it('the registry exports counters, gauges and histograms of a table, and the process metrics', async () => {
    const registry = createRegistry();
    const metrics = registerMetrics(registry, GATEWAY_METRICS);
    metrics.count('temper_messages_total', { outcome: 'sent' });
    metrics.count('temper_messages_total', { outcome: 'sent' }, 2);
    metrics.count('temper_messages_total', { outcome: 'refused' }, 0);
    metrics.gauge('temper_nats_connected', {}, 1);
    metrics.observe('temper_message_wait_seconds', {}, 0.3);
    const text = await registry.metrics();
    assert.match(text, /^temper_messages_total\{outcome="sent"\} 3$/m);
    assert.match(text, /^temper_messages_total\{outcome="refused"\} 0$/m);
    assert.match(text, /^temper_nats_connected 1$/m);
    assert.match(text, /^temper_message_wait_seconds_bucket\{le="0.5"\} 1$/m);
    assert.match(text, /^process_resident_memory_bytes \d+$/m);
  });

  it('watchAll exports the samples read at each scrape, drops missing series, and keeps the last samples after a failure', async () => {
    const registry = createRegistry();
    const metrics = registerMetrics(registry, OPERATOR_METRICS);
    let pods: Record<string, number> = { agent: 2, warm: 1 };
    let broken = false;
    metrics.watchAll('temper_pods', async () => {
      if (broken) throw new Error('cannot be read');
      return Object.entries(pods).map(([kind, value]) => ({ labels: { kind, state: 'ready' }, value }));
    });
    const shown = async () => (await registry.metrics()).match(/^temper_pods\{.*$/gm);
    const sample = (kind: string, value: number) => `temper_pods{kind="${kind}",state="ready"} ${value}`;
    assert.deepEqual(await shown(), [sample('agent', 2), sample('warm', 1)]);
    pods = { agent: 3 };
    assert.deepEqual(await shown(), [sample('agent', 3)]);
    broken = true;
    assert.deepEqual(await shown(), [sample('agent', 3)]);
  });

  it('the registry writes NaN, infinite values and labels in the text format of Prometheus', async () => {
    const registry = createRegistry();
    const metrics = registerMetrics(registry, {
      temper_example_seconds: { type: 'gauge', labels: ['kind'], help: 'A gauge whose help ends in Nan' },
    });
    const values = { nothing: Number.NaN, 'a Nan': Number.NaN, most: Infinity, least: -Infinity };
    for (const [kind, value] of Object.entries(values)) metrics.gauge('temper_example_seconds', { kind }, value);
    const text = await registry.metrics();
    assert.match(text, /^# HELP temper_example_seconds A gauge whose help ends in Nan$/m);
    const { samples } = parsePrometheusText(text);
    for (const [kind, value] of Object.entries(values)) {
      assert.match(text, new RegExp(`^temper_example_seconds\\{kind="${kind}"\\} (NaN|[+-]Inf)$`, 'm'));
      assert.ok(samples.has(`temper_example_seconds{kind="${kind}"}`), `${kind}: ${value}`);
    }
  });

  it('every metric follows the naming rules: counters end in _total, durations in _seconds, help in a full stop', () => {
    for (const table of [GATEWAY_METRICS, OPERATOR_METRICS] as MetricTable[]) {
      for (const [name, { type, help }] of Object.entries(table)) {
        assert.equal(name.endsWith('_total'), type === 'counter', name);
        if (type === 'histogram') assert.ok(name.endsWith('_seconds'), name);
        assert.ok(name.startsWith('temper_') && help.endsWith('.'), name);
      }
    }
  });

  it('unknown labels and a second registration are rejected', () => {
    const registry = createRegistry();
    const metrics = registerMetrics(registry, OPERATOR_METRICS);
    assert.throws(() => metrics.count('temper_writes_total', { agent: 'team-a/scout' }));
    assert.throws(() => registerMetrics(registry, OPERATOR_METRICS));
  });
});
