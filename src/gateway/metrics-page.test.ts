import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { it } from 'node:test';
import { METRICS } from '../kube/metrics.ts';
import { createRegistry, registerMetrics } from '../telemetry/prometheus.ts';
import { GATEWAY_METRICS, OPERATOR_METRICS } from '../telemetry/temper-metrics.ts';
import { metricsPage } from './metrics-page.ts';

it('the committed metrics page is up to date', async () => {
  const path = 'docs/reference/metrics.md';
  const committed = await readFile(resolve(import.meta.dirname, '../..', path), 'utf8').catch(() => '');
  assert.ok(committed === metricsPage(), `${path} is out of date: run make generate`);
});

for (const [role, table] of Object.entries({ gateway: GATEWAY_METRICS, operator: OPERATOR_METRICS })) {
  it(`all metric tables of the ${role} fit into one registry`, () => {
    const registry = createRegistry();
    // Registering a duplicate name throws.
    registerMetrics(registry, METRICS);
    registerMetrics(registry, table);
    const names = registry.getMetricsAsArray().map(({ name }) => name);
    for (const name of [...Object.keys(METRICS), ...Object.keys(table)]) assert.ok(names.includes(name), name);
  });
}
