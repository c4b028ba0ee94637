import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { createRegistry, registerMetrics } from '../../src/telemetry/prometheus.ts';
import { OPERATOR_METRICS } from '../../src/telemetry/temper-metrics.ts';
import { metricFamilies } from './metrics-text.ts';
import {
  agentOf,
  CONFIG,
  isWriteRequest,
  counting,
  eventually,
  policyOf,
  readyReason,
  type Running,
  startOperator,
  startWorld,
  type World,
} from './operator-world.ts';
import type { KubeRequest } from '../../src/kube/transport.ts';

const POOLED = { ...CONFIG.sandboxClasses[0], pool: [{ namespace: 'pooled', size: 3 }] };

describe('what the operator counts', () => {
  let world: World;
  let operator: Running;
  const registry = createRegistry();
  const seen: KubeRequest[] = [];

  before(async () => {
    world = await startWorld();
    await world.namespace('pooled');
    await world.namespace('team-a');
    const config = { ...CONFIG, sandboxClasses: [POOLED] } as typeof CONFIG;
    const counts = registerMetrics(registry, OPERATOR_METRICS);
    operator = await startOperator(world, config, { counts, wrap: (transport) => counting(transport, seen) });
  });
  after(async () => {
    await operator?.stop();
    await world?.[Symbol.asyncDispose]();
  });

  it('is what the API server holds: agents, pods, pools, certificates; and every write', async () => {
    await world.apply(policyOf('team-a'));
    for (const name of ['analyst', 'writer']) {
      await world.apply(agentOf('team-a', name));
      await world.agentWith('team-a', name, 'runs', (agent) => readyReason(agent) === 'Running');
    }
    await world.apply(agentOf('team-a', 'lost', { trustPolicyRef: { name: 'none' } }));
    await world.agentWith('team-a', 'lost', 'waits', (agent) => readyReason(agent) === 'TrustPolicyNotFound');
    const samples = await settled();
    const value = (sample: string): number | undefined => samples.get(sample);
    assert.equal(value('temper_agents{ready="True",reason="Running"}'), 2);
    assert.equal(value('temper_agents{ready="False",reason="TrustPolicyNotFound"}'), 1);
    assert.equal(value('temper_pods{kind="agent",state="ready"}'), 2);
    const { name = '' } = POOLED;
    assert.equal(value(`temper_warm_pods{sandbox_class="${name}",kind="wanted"}`), 3);
    assert.equal(value(`temper_warm_pods{sandbox_class="${name}",kind="there"}`), 3);
    const end = value('temper_certificate_expiration_timestamp_seconds{certificate="temper-gateway-tls"}') ?? 0;
    assert.ok(end > Date.now() / 1_000 + 80 * 86_400 && end < Date.now() / 1_000 + 91 * 86_400);
    assert.ok((value('temper_certificate_expiration_timestamp_seconds{certificate="temper-authority"}') ?? 0) > end);
  });

  /** Once pods and caches have come to rest, and every write has its answer. */
  async function settled(): Promise<ReadonlyMap<string, number>> {
    const writes = (): number =>
      seen.filter((request) => isWriteRequest(request) && !request.path.includes('/events')).length;
    const rest = (samples: ReadonlyMap<string, number>): boolean => {
      const counted = [...samples].filter(([sample]) => sample.startsWith('temper_writes_total'));
      return (
        samples.get('temper_pods{kind="agent",state="ready"}') === 2 &&
        samples.get(`temper_warm_pods{sandbox_class="${POOLED.name}",kind="there"}`) === 3 &&
        samples.get('temper_writes_total{resource="pods",verb="create",outcome="ok"}') === 5 &&
        counted.reduce((sum, [, count]) => sum + count, 0) === writes()
      );
    };
    const read = async () => metricFamilies(await registry.metrics()).samples;
    return eventually(read, rest, 'the counts are those of the world');
  }
});
