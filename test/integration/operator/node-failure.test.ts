import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Pod, StoredAgent } from '../../../src/operator/kube/types.ts';
import { startApiServerFixture, type ApiServerFixture } from '../../support/api-server/api-server-fixture.ts';
import { buildAgent, readyMessage, buildTrustPolicy, readyReason } from '../../support/builders.ts';
import { type RunningOperator, startOperator } from '../../support/operator/start-operator.ts';

const NAMESPACE = 'team-a';
const SILENT_NODE = 'faraway';
/** When no node reports, the node controller assumes a network partition and evicts no pods; so one node keeps reporting. */
const HEALTHY_NODE = 'nearby';
const REPORT_MS = 1_000;
/** Node monitor grace period. It covers many reports of the healthy node, so that a slow machine does not mark it as not ready. */
const GRACE_SECONDS = 10;

describe('an agent on a node that stops reporting', () => {
  let apiServer: ApiServerFixture;
  let operator: RunningOperator;
  let first: Pod;
  const stopping = new AbortController();
  let reporting: Promise<void> | undefined;

  before(async () => {
    apiServer = await startApiServerFixture({ controllerManager: true, nodeGrace: GRACE_SECONDS });
    await apiServer.createNamespace(NAMESPACE);
    await apiServer.apply(buildTrustPolicy(NAMESPACE));
    for (const name of [SILENT_NODE, HEALTHY_NODE]) await call('POST', '/api/v1/nodes', { metadata: { name } }, 201);
    reporting = keepReporting(HEALTHY_NODE);
    operator = await startOperator(apiServer);
    await apiServer.apply(buildAgent(NAMESPACE, 'analyst'));
    await waitForReason('Running');
    [first] = (await apiServer.listPods(NAMESPACE)) as [Pod];
    const { name } = first.metadata;
    const binding = { metadata: { name }, target: { kind: 'Node', name: SILENT_NODE } };
    await call('POST', `/api/v1/namespaces/${NAMESPACE}/pods/${name}/binding`, binding, 201);
  });

  after(async () => {
    stopping.abort();
    await reporting;
    await operator?.stop();
    await apiServer?.[Symbol.asyncDispose]();
  });

  async function call(method: string, path: string, body: object, expected: number): Promise<void> {
    const contentType = method === 'PATCH' ? 'application/strategic-merge-patch+json' : undefined;
    const answer = await apiServer.plane.admin.call(
      method,
      path,
      contentType === undefined ? { body } : { body, contentType },
    );
    assert.equal(answer.status, expected, JSON.stringify(answer.body));
  }

  /** Writes the Ready condition of a node once, as its kubelet does. */
  async function reportReady(node: string): Promise<void> {
    const now = new Date().toISOString();
    const ready = { type: 'Ready', status: 'True', reason: 'KubeletReady', lastHeartbeatTime: now };
    await call('PATCH', `/api/v1/nodes/${node}/status`, { status: { conditions: [ready] } }, 200);
  }

  async function keepReporting(node: string): Promise<void> {
    while (!stopping.signal.aborted) {
      await reportReady(node);
      await sleep(REPORT_MS, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  }

  const waitForReason = (reason: string, holds: (agent: StoredAgent) => boolean = () => true) =>
    apiServer.waitForAgent(NAMESPACE, 'analyst', reason, (agent) => readyReason(agent) === reason && holds(agent));

  it('the agent reports NodeNotReady while its pod stays bound', async () => {
    // The fake kubelet neither starts nor removes pods from now on.
    apiServer.withoutKubelet.add(NAMESPACE);
    await reportReady(SILENT_NODE);
    const agent = await waitForReason('NodeNotReady');
    assert.match(
      readyMessage(agent),
      /^node "faraway" of pod "analyst-\w+" does not respond; .*kubectl describe node faraway$/,
    );
    assert.equal(agent.status?.pod?.uid, first.metadata.uid);
    assert.equal((await apiServer.listPods(NAMESPACE)).length, 1);
  });

  it('the agent gets another pod when the node controller evicts the first, and only the new pod is bound', async () => {
    const isAnother = ({ status }: StoredAgent) => status?.pod !== undefined && status.pod.uid !== first.metadata.uid;
    const agent = await waitForReason('Starting', isAnother);
    const pods = await apiServer.listPods(NAMESPACE);
    const ending = pods.filter(({ metadata }) => metadata.deletionTimestamp !== undefined);
    assert.deepEqual(
      ending.map(({ metadata }) => metadata.uid),
      [first.metadata.uid],
    );
    assert.equal(pods.length, 2);
    apiServer.withoutKubelet.delete(NAMESPACE);
    await waitForReason('Running', ({ status }) => status?.pod?.uid === agent.status?.pod?.uid);
  });
});
