import assert from 'node:assert/strict';
import { it } from 'node:test';
import { OPERATOR_CONFIG } from '../../test/support/operator/start-operator.ts';
import { Store } from '../kube/informer/store.ts';
import { createRegistry, registerMetrics } from '../telemetry/prometheus.ts';
import { OPERATOR_METRICS } from '../telemetry/temper-metrics.ts';
import { aPod, anAgent } from './agent/observed.testing.ts';
import { Cache } from './kube/cache.ts';
import type { Pod, StoredAgent } from './kube/types.ts';
import { type OperatorMetricsSource, registerOperatorGauges } from './metrics.ts';
import { WarmPool } from './pool/warm-pool.ts';

it('only the leader reports agents, pods and warm pods, so that a sum over the replicas is right', async () => {
  const registry = createRegistry();
  const agentStore = new Store<StoredAgent>();
  const podStore = new Store<Pod>();
  const pods = new Cache([podStore]);
  const pool = [{ namespace: 'team-a', size: 2 }];
  const leadership = { isLeader: false };
  registerOperatorGauges(registerMetrics(registry, OPERATOR_METRICS), {
    config: { sandboxClasses: OPERATOR_CONFIG.sandboxClasses.map((one) => ({ ...one, pool })) },
    agents: new Cache([agentStore]),
    pods,
    pool: new WarmPool(pods),
    policyMonitor: { states: () => [] },
    pki: { expirations: () => [] },
    isLeader: () => leadership.isLeader,
  } as unknown as OperatorMetricsSource);
  const budget = { type: 'BudgetAvailable', status: 'True', reason: 'QuotaNearlyUsed', message: 'm' };
  agentStore.set({ ...anAgent(), status: { conditions: [budget] } } as unknown as ReturnType<typeof anAgent>);
  podStore.set(aPod('u-pod'));
  const reported = async () =>
    (await registry.metrics()).match(/^temper_(?:agents|agent_budgets|pods|warm_pods)\{.*$/gm) ?? [];
  assert.deepEqual(await reported(), []);
  leadership.isLeader = true;
  const samples = await reported();
  assert.equal(samples.length, 5);
  assert.equal(samples[0], 'temper_agents{ready="Unknown",reason="Pending"} 1');
  assert.equal(samples[1], 'temper_agent_budgets{reason="QuotaNearlyUsed"} 1');
});
