import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { type PlainObject, TYPES } from '../../../src/operator/kube/types.ts';
import type { OperatorConfig } from '../../../src/operator/config.ts';
import { tool } from '../../cluster/tools.ts';
import { type FakeActivity, createFakeActivity, type AgentFault } from '../../support/faults/fault-context.ts';
import { AGENT_FAULTS } from '../../support/faults/agent-faults.ts';
import { type ApiServerFixture, startApiServerFixture } from '../../support/api-server/api-server-fixture.ts';
import { buildAgent, buildTrustPolicy, readyReason } from '../../support/builders.ts';
import { OPERATOR_CONFIG, type RunningOperator, startOperator } from '../../support/operator/start-operator.ts';
import { pollValue } from '../../support/poll.ts';
import { NEVER_ABORTED } from '../../support/stubs.ts';

const EVENTS = { group: '', version: 'v1', plural: 'events', kind: 'Event', namespaced: true };

interface EventOfObject extends PlainObject {
  readonly reason: string;
  readonly involvedObject: { readonly kind: string };
}

interface ShownCondition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

/** Parses conditions and Events from the output of `kubectl describe`. */
function parseDescription(described: string): { conditions: ShownCondition[]; events: string } {
  const one =
    /Last Transition Time:.*\n\s+Message:\s+(.*)\n\s+Observed Generation:.*\n\s+Reason:\s+(\w+)\n\s+Status:\s+(\w+)\n\s+Type:\s+(\w+)/g;
  const conditions = [...described.matchAll(one)].map(([, message = '', reason = '', status = '', type = '']) => {
    return { type, status, reason, message };
  });
  return { conditions, events: described.slice(described.lastIndexOf('\nEvents:')) };
}

describe('the conditions of an agent', () => {
  let apiServer: ApiServerFixture;
  let kubectl: string;
  let activity: FakeActivity;
  const operators: RunningOperator[] = [];

  before(async () => {
    kubectl = await tool('kubectl');
    apiServer = await startApiServerFixture({ controllerManager: true });
    activity = createFakeActivity();
    const [standard] = OPERATOR_CONFIG.sandboxClasses;
    const sandboxClasses = [standard, { ...standard, name: 'gvisor', runtimeClassName: 'gvisor' }];
    const namespaces = [...AGENT_FAULTS.map(namespaceOf), 'fault-forged', 'fault-deleted'];
    const config = { ...OPERATOR_CONFIG, namespaces, sandboxClasses } as OperatorConfig;
    operators.push(
      await startOperator(apiServer, config, {
        agentStats: activity.agentStats,
        agentActivity: activity.agentActivity,
      }),
    );
  });

  after(async () => {
    for (const operator of operators) await operator.stop();
    await apiServer?.[Symbol.asyncDispose]();
  });

  const describeAgent = async (namespace: string): Promise<string> => {
    const flags = [
      '--kubeconfig',
      apiServer.plane.kubeconfig,
      '--namespace',
      namespace,
      'describe',
      'agent',
      'analyst',
    ];
    return (await promisify(execFile)(kubectl, flags)).stdout;
  };

  /** Waits for the condition and its Event, then reads both from `kubectl describe`. */
  const describedCondition = async (namespace: string, type: string, reason: string) => {
    await apiServer.waitForAgent(namespace, 'analyst', `${type} ${reason}`, ({ status }) => {
      return status?.conditions?.some((condition) => condition.type === type && condition.reason === reason) === true;
    });
    await pollValue(
      `an Event ${reason} of the agent`,
      () => apiServer.client.list<EventOfObject>(EVENTS, { namespace }, NEVER_ABORTED),
      // Its policy can have an Event with the same reason.
      (all) => all.some((event) => event.reason === reason && event.involvedObject.kind === 'Agent'),
    );
    const text = await describeAgent(namespace);
    const { conditions, events } = parseDescription(text);
    const condition = conditions.find((each) => each.type === type);
    assert.equal(condition?.reason, reason, text);
    return { condition, events, text };
  };

  const testFault = (fault: AgentFault) =>
    it(`kubectl describe agent shows cause and remedy when ${fault.cause}, and the recovery`, async () => {
      const namespace = namespaceOf(fault);
      const context = { apiServer, activity, namespace };
      const type = fault.condition ?? 'Ready';
      await apiServer.createNamespace(namespace);
      await fault.inject(context);
      const { condition, events, text } = await describedCondition(namespace, type, fault.reason);
      assert.equal(condition.status, fault.status ?? 'False', text);
      for (const words of fault.messages) assert.match(condition.message, words);
      const kind = fault.reason === 'Suspended' ? 'Normal' : 'Warning';
      const [, line = ''] = new RegExp(`^ +(${kind} +${fault.reason} .*)$`, 'm').exec(events) ?? [];
      assert.notEqual(line, '', text);
      await fault.clear(context);
      await apiServer.waitForAgent(namespace, 'analyst', 'recovers', ({ status }) => {
        const now = status?.conditions?.find((each) => each.type === type);
        return now === undefined || now.status === 'True';
      });
      const agent = await apiServer.waitForAgent(
        namespace,
        'analyst',
        'runs',
        (found) => readyReason(found) === 'Running',
      );
      const bound = (await apiServer.listPods(namespace)).filter(
        ({ metadata }) => metadata.uid === agent.status?.pod?.uid,
      );
      assert.equal(bound.length, 1);
    });

  // The operator retries after seconds, so most of the time of each test is a wait.
  describe('an agent and a fault in its own namespace', { concurrency: 8 }, () => {
    for (const fault of AGENT_FAULTS.filter(({ isClusterWide }) => isClusterWide !== true)) testFault(fault);
  });

  for (const fault of AGENT_FAULTS.filter(({ isClusterWide }) => isClusterWide === true)) testFault(fault);

  for (const [what, id, config, reason, pattern] of [
    [
      'the admission policies of the cluster are missing',
      'fault-admission-policies',
      { admissionPolicies: { policies: { 'temper-namespace-protection': `sha256:${'0'.repeat(64)}` } } },
      'AdmissionPolicyMissing',
      /ValidatingAdmissionPolicy "temper-namespace-protection" does not exist, so the operator creates no new pod; upgrade the one release of the chart that installs the admission policies, with clusterPrerequisites\.enabled/,
    ],
    [
      'the gateway has no Service',
      'fault-gateway',
      { gateway: { ...OPERATOR_CONFIG.gateway, service: 'temper-absent' } },
      'Starting',
      /waiting for the gateway: its Service has no address, or its certificate does not exist yet; check the Services of the release/,
    ],
  ] as const) {
    it(`kubectl describe agent shows cause and remedy when ${what}`, async () => {
      await apiServer.createNamespace(id);
      operators.push(await startOperator(apiServer, { ...OPERATOR_CONFIG, ...config, namespaces: [id] }));
      await apiServer.apply(buildTrustPolicy(id));
      await apiServer.apply(buildAgent(id, 'analyst'));
      const { condition, events } = await describedCondition(id, 'Ready', reason);
      assert.match(condition.message, pattern);
      assert.match(events, new RegExp(reason));
      assert.deepEqual(await apiServer.listPods(id), []);
    });
  }

  it('the operator corrects a status that another client wrote', async () => {
    const namespace = 'fault-forged';
    await apiServer.createNamespace(namespace);
    await apiServer.apply(buildTrustPolicy(namespace));
    await apiServer.apply(buildAgent(namespace, 'analyst', { suspend: true }));
    await apiServer.waitForAgent(namespace, 'analyst', 'is suspended', (agent) => readyReason(agent) === 'Suspended');
    const forged = {
      type: 'Ready',
      status: 'True',
      observedGeneration: 1,
      lastTransitionTime: '2026-01-01T00:00:00Z',
      reason: 'Running',
      message: 'as I say',
    };
    const pod = { name: 'another', uid: '5f0c2a4e-6c43-4f0e-9a53-0d9a3b1f6c11' };
    const status = { pod, conditions: [forged] };
    const ref = { namespace, name: 'analyst' };
    await apiServer.client.patch(TYPES.agents, ref, { status }, NEVER_ABORTED, { subresource: 'status' });
    await apiServer.waitForAgent(namespace, 'analyst', 'has the corrected status', (agent) => {
      return readyReason(agent) === 'Suspended' && agent.status?.pod === undefined;
    });
    const text = await describeAgent(namespace);
    assert.doesNotMatch(text, /as I say|another/);
  });

  it('an agent in a terminating namespace shows its deletion, and gets no new pod', async () => {
    const namespace = 'fault-deleted';
    const ref = { namespace, name: 'analyst' };
    await apiServer.createNamespace(namespace);
    await apiServer.apply(buildTrustPolicy(namespace));
    await apiServer.apply(buildAgent(namespace, 'analyst'));
    await apiServer.waitForAgent(namespace, 'analyst', 'runs', (agent) => readyReason(agent) === 'Running');
    await apiServer.client.patch(TYPES.agents, ref, { metadata: { finalizers: ['test/keep'] } }, NEVER_ABORTED);
    await apiServer.client.delete(TYPES.namespaces, { name: namespace }, {}, NEVER_ABORTED);
    await apiServer.waitForAgent(
      namespace,
      'analyst',
      'has a deletion timestamp',
      ({ metadata }) => metadata.deletionTimestamp !== undefined,
    );
    await pollValue(
      'no pod',
      () => apiServer.listPods(namespace),
      (pods) => pods.length === 0,
    );
    assert.match(await describeAgent(namespace), /Deletion Timestamp:/);
    await apiServer.client.patch(TYPES.agents, ref, { metadata: { finalizers: null } }, NEVER_ABORTED);
    await pollValue(
      'the deletion of the namespace',
      () => apiServer.client.get(TYPES.namespaces, { name: namespace }, NEVER_ABORTED),
      (found) => found === undefined,
    );
  });
});

function namespaceOf({ id }: AgentFault): string {
  return `fault-${id}`;
}
