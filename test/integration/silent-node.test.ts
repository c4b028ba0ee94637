import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Pod, StoredAgent } from '../../src/operator/kube-types.ts';
import {
  agentOf,
  messageOfReady,
  policyOf,
  readyReason,
  type Running,
  startOperator,
  startWorld,
  type World,
} from './operator-world.ts';

const NAMESPACE = 'team-a';
const NODE = 'faraway';
/** Where every node is silent the control plane takes itself for the one that is cut off, and gives none up. */
const OTHER = 'nearby';
const REPORT_MS = 1_000;
/** Until the control plane calls a node silent; seconds, and many reports of the other one, so that a busy machine silences only the first. */
const GRACE = 10;

describe('an agent on a node that falls silent', () => {
  let world: World;
  let operator: Running;
  let first: Pod;
  const stopping = new AbortController();
  let reporting: Promise<void> | undefined;

  before(async () => {
    world = await startWorld({ controllerManager: true, nodeGrace: GRACE });
    await world.namespace(NAMESPACE);
    await world.apply(policyOf(NAMESPACE));
    for (const name of [NODE, OTHER]) await call('POST', '/api/v1/nodes', { metadata: { name } }, 201);
    reporting = keepReporting(OTHER);
    operator = await startOperator(world);
    await world.apply(agentOf(NAMESPACE, 'analyst'));
    await agentIs('Running');
    [first] = (await world.pods(NAMESPACE)) as [Pod];
    const { name } = first.metadata;
    const binding = { metadata: { name }, target: { kind: 'Node', name: NODE } };
    await call('POST', `/api/v1/namespaces/${NAMESPACE}/pods/${name}/binding`, binding, 201);
  });

  after(async () => {
    stopping.abort();
    await reporting;
    await operator?.stop();
    await world?.[Symbol.asyncDispose]();
  });

  async function call(method: string, path: string, body: object, expected: number): Promise<void> {
    const contentType = method === 'PATCH' ? 'application/strategic-merge-patch+json' : undefined;
    const answer = await world.plane.admin.call(
      method,
      path,
      contentType === undefined ? { body } : { body, contentType },
    );
    assert.equal(answer.status, expected, JSON.stringify(answer.body));
  }

  /** As its kubelet reports it, once. */
  async function reports(node: string): Promise<void> {
    const now = new Date().toISOString();
    const ready = { type: 'Ready', status: 'True', reason: 'KubeletReady', lastHeartbeatTime: now };
    await call('PATCH', `/api/v1/nodes/${node}/status`, { status: { conditions: [ready] } }, 200);
  }

  async function keepReporting(node: string): Promise<void> {
    while (!stopping.signal.aborted) {
      await reports(node);
      await sleep(REPORT_MS, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  }

  const agentIs = (reason: string, holds: (agent: StoredAgent) => boolean = () => true) =>
    world.agentWith(NAMESPACE, 'analyst', reason, (agent) => readyReason(agent) === reason && holds(agent));

  it('says so while its pod stays bound', async () => {
    // Nobody is there who would end a pod or start one.
    world.untended.add(NAMESPACE);
    await reports(NODE);
    const agent = await agentIs('NodeNotReady');
    assert.match(
      messageOfReady(agent),
      /^node "faraway" of pod "analyst-\w+" does not answer; .*kubectl describe node faraway$/,
    );
    assert.equal(agent.status?.pod?.uid, first.metadata.uid);
    assert.equal((await world.pods(NAMESPACE)).length, 1);
  });

  it('gets another pod when the cluster gives the node up, and only that one is the agent', async () => {
    const isAnother = ({ status }: StoredAgent) => status?.pod !== undefined && status.pod.uid !== first.metadata.uid;
    const agent = await agentIs('Starting', isAnother);
    const pods = await world.pods(NAMESPACE);
    const ending = pods.filter(({ metadata }) => metadata.deletionTimestamp !== undefined);
    assert.deepEqual(
      ending.map(({ metadata }) => metadata.uid),
      [first.metadata.uid],
    );
    assert.equal(pods.length, 2);
    world.untended.delete(NAMESPACE);
    await agentIs('Running', ({ status }) => status?.pod?.uid === agent.status?.pod?.uid);
  });
});
