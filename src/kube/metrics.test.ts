import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createRegistry, registerMetrics } from '../telemetry/prometheus.ts';
import { FakeClock } from '../lib/fake-clock.testing.ts';
import { METRICS } from './metrics.ts';
import { createRateLimiter } from './controller/rate-limiter.ts';
import { WorkQueue } from './controller/work-queue.ts';

describe('the metrics of the controller runtime', () => {
  it('the registry exports recorded values with name, help and labels', async () => {
    const registry = createRegistry();
    const metrics = registerMetrics(registry, METRICS);
    metrics.count('controller_runtime_reconcile_total', { controller: 'agents', result: 'success' }, 0);
    metrics.count('controller_runtime_reconcile_errors_total', { controller: 'agents' });
    metrics.gauge('controller_runtime_active_workers', { controller: 'agents' }, 3);
    metrics.observe('controller_runtime_reconcile_time_seconds', { controller: 'agents' }, 0.02);
    const text = await registry.metrics();
    for (const line of [
      'controller_runtime_reconcile_total{controller="agents",result="success"} 0',
      'controller_runtime_reconcile_errors_total{controller="agents"} 1',
      'controller_runtime_active_workers{controller="agents"} 3',
      'controller_runtime_reconcile_time_seconds_bucket{le="0.01",controller="agents"} 0',
      'controller_runtime_reconcile_time_seconds_bucket{le="0.025",controller="agents"} 1',
    ]) {
      assert.ok(text.includes(`${line}\n`), line);
    }
    for (const [name, { help, type }] of Object.entries(METRICS)) {
      assert.ok(text.includes(`# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`), name);
    }
  });

  it('the processing time of keys is computed at each scrape', async () => {
    const registry = createRegistry();
    const clock = new FakeClock();
    const metrics = registerMetrics(registry, METRICS);
    const queue = new WorkQueue({ name: 'agents', clock, limiter: createRateLimiter(clock), metrics });
    const labels = '{name="agents",controller="agents"}';
    assert.ok((await registry.metrics()).includes(`workqueue_unfinished_work_seconds${labels} 0\n`));
    queue.add('a');
    await queue.get();
    await clock.advance(2_000);
    queue.add('b');
    await queue.get();
    await clock.advance(1_000);
    const text = await registry.metrics();
    assert.ok(text.includes(`workqueue_unfinished_work_seconds${labels} 4\n`));
    assert.ok(text.includes(`workqueue_longest_running_processor_seconds${labels} 3\n`));
    assert.ok(text.includes(`workqueue_adds_total${labels} 2\n`));
  });

  it('unknown labels and a second registration are rejected', () => {
    const registry = createRegistry();
    const metrics = registerMetrics(registry, METRICS);
    assert.throws(() => metrics.count('workqueue_adds_total', { key: 'team/a' }));
    assert.throws(() => registerMetrics(registry, METRICS));
  });
});
