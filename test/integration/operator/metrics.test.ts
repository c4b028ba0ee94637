import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { createRegistry, registerMetrics } from '../../../src/telemetry/prometheus.ts';
import { OPERATOR_METRICS } from '../../../src/telemetry/temper-metrics.ts';
import { parsePrometheusText } from '../../support/prometheus-text.ts';
import { startApiServerFixture, type ApiServerFixture } from '../../support/api-server/api-server-fixture.ts';
import { buildAgent, buildTrustPolicy, readyReason } from '../../support/builders.ts';
import {
  OPERATOR_CONFIG,
  isWriteRequest,
  recordingTransport,
  type RunningOperator,
  startOperator,
} from '../../support/operator/start-operator.ts';
import type { KubeRequest } from '../../../src/kube/client/transport.ts';
import { pollValue } from '../../support/poll.ts';

const POOLED = { ...OPERATOR_CONFIG.sandboxClasses[0], pool: [{ namespace: 'pooled', size: 3 }] };

describe('the metrics of the operator', () => {
  let apiServer: ApiServerFixture;
  let operator: RunningOperator;
  const registry = createRegistry();
  const apiRequests: KubeRequest[] = [];

  before(async () => {
    apiServer = await startApiServerFixture();
    await apiServer.createNamespace('pooled');
    await apiServer.createNamespace('team-a');
    const config = { ...OPERATOR_CONFIG, sandboxClasses: [POOLED] } as typeof OPERATOR_CONFIG;
    const operatorMetrics = registerMetrics(registry, OPERATOR_METRICS);
    operator = await startOperator(apiServer, config, {
      operatorMetrics,
      wrap: (transport) => recordingTransport(transport, apiRequests),
    });
  });
  after(async () => {
    await operator?.stop();
    await apiServer?.[Symbol.asyncDispose]();
  });

  it('the metrics equal the agents, pods, pools and certificates of the API server, and all writes', async () => {
    await apiServer.apply(buildTrustPolicy('team-a'));
    for (const name of ['analyst', 'writer']) {
      await apiServer.apply(buildAgent('team-a', name));
      await apiServer.waitForAgent('team-a', name, 'runs', (agent) => readyReason(agent) === 'Running');
    }
    await apiServer.apply(buildAgent('team-a', 'lost', { trustPolicyRef: { name: 'none' } }));
    await apiServer.waitForAgent('team-a', 'lost', 'waits', (agent) => readyReason(agent) === 'TrustPolicyNotFound');
    const samples = await stableSamples();
    const value = (sample: string): number | undefined => samples.get(sample);
    assert.equal(value('temper_agents{ready="True",reason="Running"}'), 2);
    assert.equal(value('temper_agents{ready="False",reason="TrustPolicyNotFound"}'), 1);
    assert.equal(value('temper_pods{kind="agent",state="ready"}'), 2);
    const { name = '' } = POOLED;
    assert.equal(value(`temper_warm_pods{sandbox_class="${name}",state="desired"}`), 3);
    assert.equal(value(`temper_warm_pods{sandbox_class="${name}",state="available"}`), 3);
    const end = value('temper_certificate_expiration_timestamp_seconds{certificate="temper-gateway-tls"}') ?? 0;
    assert.ok(end > Date.now() / 1_000 + 80 * 86_400 && end < Date.now() / 1_000 + 91 * 86_400);
    assert.ok((value('temper_certificate_expiration_timestamp_seconds{certificate="temper-ca"}') ?? 0) > end);
  });

  /** Waits until pods and caches are stable and every write has a response, and returns the samples. */
  async function stableSamples(): Promise<ReadonlyMap<string, number>> {
    const writes = (): number =>
      apiRequests.filter((request) => isWriteRequest(request) && !request.path.includes('/events')).length;
    const isStable = (samples: ReadonlyMap<string, number>): boolean => {
      const counted = [...samples].filter(([sample]) => sample.startsWith('temper_writes_total'));
      return (
        samples.get('temper_pods{kind="agent",state="ready"}') === 2 &&
        samples.get(`temper_warm_pods{sandbox_class="${POOLED.name}",state="available"}`) === 3 &&
        samples.get('temper_writes_total{resource="pods",verb="create",outcome="ok"}') === 5 &&
        counted.reduce((sum, [, count]) => sum + count, 0) === writes()
      );
    };
    const read = async () => parsePrometheusText(await registry.metrics()).samples;
    return pollValue('metrics that match the API server', read, isStable);
  }
});
