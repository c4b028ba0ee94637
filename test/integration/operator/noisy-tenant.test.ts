import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { KubeRequest, Transport } from '../../../src/kube/client/transport.ts';
import { type StoredAgent, TYPES } from '../../../src/operator/kube/types.ts';
import { type ApiServerFixture, startApiServerFixture } from '../../support/api-server/api-server-fixture.ts';
import { buildAgent, buildTrustPolicy, readyReason } from '../../support/builders.ts';
import { isWriteRequest, OPERATOR_CONFIG, startOperator } from '../../support/operator/start-operator.ts';
import { poll } from '../../support/poll.ts';
import { NEVER_ABORTED, NO_METRICS } from '../../support/stubs.ts';

/** Agents of one tenant above the quota of its policy. */
const AGENTS = 300;
const CONCURRENCY = 8;

describe('a tenant with many agents above its quota', () => {
  let server: ApiServerFixture;

  before(async () => {
    server = await startApiServerFixture();
    for (const namespace of ['greedy', 'modest']) await server.createNamespace(namespace);
    await server.apply(buildTrustPolicy('greedy', { quotas: { agents: 1 } }));
    await server.apply(buildTrustPolicy('modest'));
    const names = Array.from({ length: AGENTS }, (_, index) => `agent-${index}`);
    const create = async () => {
      for (let name = names.pop(); name !== undefined; name = names.pop()) {
        await server.client.create(TYPES.agents, buildAgent('greedy', name), NEVER_ABORTED);
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, create));
  });

  after(async () => {
    await server?.[Symbol.asyncDispose]();
  });

  it('a change of its policy does not delay the agent of another tenant, and only one of its agents has a pod', async () => {
    let queued = 0;
    const metrics = {
      ...NO_METRICS,
      gauge: (name: string, labels: Readonly<Record<string, string>>, value: number) => {
        if (name === 'workqueue_depth' && labels['name'] === 'agents' && labels['priority'] === '0') queued = value;
      },
    };
    const sent: KubeRequest[] = [];
    const gate = { closed: false, open: Promise.withResolvers<void>() };
    // While the gate is closed, the writes of the workers wait, and the queue of the agents grows.
    const wrap = (transport: Transport): Transport => ({
      ...transport,
      send: async (request, signal) => {
        if (gate.closed && request.path.includes('/namespaces/greedy/agents/')) await gate.open.promise;
        sent.push(request);
        return transport.send(request, signal);
      },
    });
    const operator = await startOperator(server, OPERATOR_CONFIG, { metrics, wrap });
    try {
      const isSettled = (agent: StoredAgent) => ['Running', 'AgentQuotaExceeded'].includes(readyReason(agent) ?? '');
      const agentsOf = (namespace: string) =>
        server.client.list<StoredAgent>(TYPES.agents, { namespace }, NEVER_ABORTED);
      await poll('the status of every agent', async () => (await agentsOf('greedy')).every(isSettled));
      assert.equal((await server.listPods('greedy')).length, 1);

      gate.closed = true;
      await server.apply(buildTrustPolicy('greedy', { quotas: { agents: 1 }, suspend: true }));
      await poll('all agents of the policy in the queue', async () => queued >= AGENTS - CONCURRENCY);
      const before = queued;
      await server.client.create(TYPES.agents, buildAgent('modest', 'analyst'), NEVER_ABORTED);
      await poll('the agent of the other tenant in the queue', async () => queued > before);
      sent.length = 0;
      gate.open.resolve();
      await server.waitForAgent('modest', 'analyst', 'is running', (agent) => readyReason(agent) === 'Running');

      const writes = sent.filter(isWriteRequest);
      const first = writes.findIndex(({ path }) => path.includes('/namespaces/modest/'));
      assert.ok(first >= 0 && first < AGENTS / 4, `${first} writes for the greedy tenant came first`);
    } finally {
      gate.open.resolve();
      await operator.stop();
    }
  });
});
