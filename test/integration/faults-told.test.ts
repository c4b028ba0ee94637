import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { type PlainObject, TYPES } from '../../src/operator/kube-types.ts';
import type { OperatorConfig } from '../../src/operator/config.ts';
import { tool } from '../cluster/tools.ts';
import { type Elsewhere, elsewhere, type Fault } from './fault-stage.ts';
import { FAULTS } from './faults.ts';
import {
  CONFIG,
  type Running,
  type World,
  agentOf,
  eventually,
  policyOf,
  readyReason,
  startOperator,
  startWorld,
} from './operator-world.ts';

const never = new AbortController().signal;
const EVENTS = { group: '', version: 'v1', plural: 'events', kind: 'Event', namespaced: true };

interface Told {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

/** The conditions and the Events as a person reads them. */
function read(described: string): { conditions: Told[]; events: string } {
  const one =
    /Last Transition Time:.*\n\s+Message:\s+(.*)\n\s+Observed Generation:.*\n\s+Reason:\s+(\w+)\n\s+Status:\s+(\w+)\n\s+Type:\s+(\w+)/g;
  const conditions = [...described.matchAll(one)].map(([, message = '', reason = '', status = '', type = '']) => {
    return { type, status, reason, message };
  });
  return { conditions, events: described.slice(described.lastIndexOf('\nEvents:')) };
}

describe('kubectl describe agent', () => {
  let world: World;
  let kubectl: string;
  let from: Elsewhere;
  const operators: Running[] = [];

  before(async () => {
    kubectl = await tool('kubectl');
    world = await startWorld({ controllerManager: true });
    from = elsewhere();
    const [standard] = CONFIG.sandboxClasses;
    const sandboxClasses = [standard, { ...standard, name: 'gvisor', runtimeClassName: 'gvisor' }];
    const namespaces = [...FAULTS.map(namespaceOf), 'fault-forged', 'fault-deleted'];
    const config = { ...CONFIG, namespaces, sandboxClasses } as OperatorConfig;
    operators.push(await startOperator(world, config, { facts: from.facts, bus: from.bus }));
  });

  after(async () => {
    for (const operator of operators) await operator.stop();
    await world?.[Symbol.asyncDispose]();
  });

  const describeAgent = async (namespace: string): Promise<string> => {
    const flags = ['--kubeconfig', world.plane.kubeconfig, '--namespace', namespace, 'describe', 'agent', 'analyst'];
    return (await promisify(execFile)(kubectl, flags)).stdout;
  };

  /** Waits for the condition and its Event, then asks as a person would. */
  const told = async (namespace: string, type: string, reason: string) => {
    await world.agentWith(namespace, 'analyst', `${type} ${reason}`, ({ status }) => {
      return status?.conditions?.some((condition) => condition.type === type && condition.reason === reason) === true;
    });
    await eventually(
      () => world.client.list<PlainObject>(EVENTS, { namespace }, never),
      (all) => all.some((event) => event['reason'] === reason),
      `an Event ${reason}`,
    );
    const text = await describeAgent(namespace);
    const { conditions, events } = read(text);
    const condition = conditions.find((each) => each.type === type);
    assert.equal(condition?.reason, reason, text);
    return { condition, events, text };
  };

  for (const fault of FAULTS) {
    it(`says why and what to do when ${fault.what}, and that it is over`, async () => {
      const namespace = namespaceOf(fault);
      const stage = { world, elsewhere: from, namespace };
      const type = fault.condition ?? 'Ready';
      await world.namespace(namespace);
      await fault.make(stage);
      const { condition, events, text } = await told(namespace, type, fault.reason);
      assert.equal(condition.status, fault.status ?? 'False', text);
      for (const words of fault.says) assert.match(condition.message, words);
      const kind = fault.reason === 'Suspended' ? 'Normal' : 'Warning';
      const [, line = ''] = new RegExp(`^ +(${kind} +${fault.reason} .*)$`, 'm').exec(events) ?? [];
      assert.notEqual(line, '', text);
      await fault.end(stage);
      await world.agentWith(namespace, 'analyst', 'is well again', ({ status }) => {
        const now = status?.conditions?.find((each) => each.type === type);
        return now === undefined || now.status === 'True';
      });
      const agent = await world.agentWith(namespace, 'analyst', 'runs', (found) => readyReason(found) === 'Running');
      const bound = (await world.pods(namespace)).filter(({ metadata }) => metadata.uid === agent.status?.pod?.uid);
      assert.equal(bound.length, 1);
    });
  }

  for (const [what, id, config, reason, says] of [
    [
      'the guards of the cluster are missing',
      'fault-guard',
      { guard: { policies: { 'temper-fence': `sha256:${'0'.repeat(64)}` } } },
      'GuardMissing',
      /ValidatingAdmissionPolicy "temper-fence" does not exist, so no new pod is made; install the chart again with clusterPrerequisites\.enabled/,
    ],
    [
      'the gateway has no Service',
      'fault-gateway',
      { gateway: { ...CONFIG.gateway, service: 'temper-absent' } },
      'Starting',
      /waits for the gateway: its Service has no address or its certificate is not made yet; look at the Services of the release/,
    ],
  ] as const) {
    it(`says why and what to do when ${what}`, async () => {
      await world.namespace(id);
      operators.push(await startOperator(world, { ...CONFIG, ...config, namespaces: [id] }));
      await world.apply(policyOf(id));
      await world.apply(agentOf(id, 'analyst'));
      const { condition, events } = await told(id, 'Ready', reason);
      assert.match(condition.message, says);
      assert.match(events, new RegExp(reason));
      assert.deepEqual(await world.pods(id), []);
    });
  }

  it('does not repeat for long what somebody else wrote into the status', async () => {
    const namespace = 'fault-forged';
    await world.namespace(namespace);
    await world.apply(policyOf(namespace));
    await world.apply(agentOf(namespace, 'analyst', { suspend: true }));
    await world.agentWith(namespace, 'analyst', 'is suspended', (agent) => readyReason(agent) === 'Suspended');
    const lie = {
      type: 'Ready',
      status: 'True',
      observedGeneration: 1,
      lastTransitionTime: '2026-01-01T00:00:00Z',
      reason: 'Running',
      message: 'as I say',
    };
    const pod = { name: 'another', uid: '5f0c2a4e-6c43-4f0e-9a53-0d9a3b1f6c11' };
    const status = { pod, conditions: [lie] };
    const ref = { namespace, name: 'analyst' };
    await world.client.patch(TYPES.agents, ref, { status }, never, { subresource: 'status' });
    await world.agentWith(namespace, 'analyst', 'tells the truth', (agent) => {
      return readyReason(agent) === 'Suspended' && agent.status?.pod === undefined;
    });
    const text = await describeAgent(namespace);
    assert.doesNotMatch(text, /as I say|another/);
  });

  it('shows that the namespace goes, and no pod is made any more', async () => {
    const namespace = 'fault-deleted';
    const ref = { namespace, name: 'analyst' };
    await world.namespace(namespace);
    await world.apply(policyOf(namespace));
    await world.apply(agentOf(namespace, 'analyst'));
    await world.agentWith(namespace, 'analyst', 'runs', (agent) => readyReason(agent) === 'Running');
    await world.client.patch(TYPES.agents, ref, { metadata: { finalizers: ['test/held'] } }, never);
    await world.client.delete(TYPES.namespaces, { name: namespace }, {}, never);
    await world.agentWith(namespace, 'analyst', 'is to go', ({ metadata }) => metadata.deletionTimestamp !== undefined);
    await eventually(
      () => world.pods(namespace),
      (pods) => pods.length === 0,
      'no pod',
    );
    assert.match(await describeAgent(namespace), /Deletion Timestamp:/);
    await world.client.patch(TYPES.agents, ref, { metadata: { finalizers: null } }, never);
    await eventually(
      () => world.client.get(TYPES.namespaces, { name: namespace }, never),
      (found) => found === undefined,
      'the namespace is gone',
    );
  });
});

function namespaceOf({ id }: Fault): string {
  return `fault-${id}`;
}
