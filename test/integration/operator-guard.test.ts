import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { digestOf } from '../../src/lib/canonical.ts';
import type { Json } from '../../src/lib/json.ts';
import { type PlainObject, type StoredAgent, TYPES } from '../../src/operator/kube-types.ts';
import {
  CONFIG,
  type Running,
  type World,
  agentOf,
  messageOfReady,
  policyOf,
  readyReason,
  startOperator,
  startWorld,
} from './operator-world.ts';

const never = new AbortController().signal;
const NAME = 'temper-fence';
/** The part of the fence that is probed, with every default written out. */
const SPEC = {
  failurePolicy: 'Fail',
  matchConstraints: {
    matchPolicy: 'Equivalent',
    namespaceSelector: { matchLabels: { 'temper.dev/agents': 'true' } },
    objectSelector: {},
    resourceRules: [{ apiGroups: [''], apiVersions: ['*'], operations: ['CREATE'], resources: ['pods'], scope: '*' }],
  },
  validations: [
    {
      expression: "has(object.metadata.labels) && 'temper.dev/agent-pod' in object.metadata.labels",
      message: 'only agent pods',
      reason: 'Forbidden',
    },
  ],
};
const BINDING = { policyName: NAME, validationActions: ['Deny'] };

function guard(kind: string, spec: object) {
  const annotations = { 'temper.dev/guard-digest': digestOf(spec as Json) };
  const metadata = { name: NAME, labels: { 'temper.dev/guard': 'true' }, annotations };
  return { apiVersion: 'admissionregistration.k8s.io/v1', kind, metadata, spec };
}

describe('an operator and the guards it relies on', () => {
  let world: World;
  let operator: Running;
  const fenced = (agent: StoredAgent) => agent.status?.conditions?.find(({ type }) => type === 'Fenced');
  const bring = async (namespace: string) => {
    await world.apply(policyOf(namespace));
    await world.apply(agentOf(namespace, 'analyst'));
  };

  before(async () => {
    world = await startWorld({ controllerManager: true });
    await world.namespace('team-a');
    const labels = { 'temper.dev/agents': 'true' };
    await world.client.patch<PlainObject>(TYPES.namespaces, { name: 'team-a' }, { metadata: { labels } }, never);
    operator = await startOperator(world, { ...CONFIG, guard: { policies: { [NAME]: digestOf(SPEC) } } });
  });

  after(async () => {
    await operator?.stop();
    await world?.[Symbol.asyncDispose]();
  });

  it('makes no pod without them, and makes it once they are in force', async () => {
    await bring('team-a');
    const waiting = await world.agentWith(
      'team-a',
      'analyst',
      'waits',
      (agent) => readyReason(agent) === 'GuardMissing',
    );
    assert.match(messageOfReady(waiting), /ValidatingAdmissionPolicy "temper-fence" does not exist/);
    assert.deepEqual(await world.pods('team-a'), []);
    await world.apply(guard('ValidatingAdmissionPolicy', SPEC));
    await world.apply(guard('ValidatingAdmissionPolicyBinding', BINDING));
    const agent = await world.agentWith('team-a', 'analyst', 'runs', (found) => readyReason(found) === 'Running');
    assert.deepEqual([fenced(agent)?.status, fenced(agent)?.reason], ['True', 'NamespaceFenced']);
  });

  it('says of a namespace without the label that it is not fenced, and works in it', async () => {
    await world.namespace('open');
    await bring('open');
    const agent = await world.agentWith('open', 'analyst', 'runs', (found) => readyReason(found) === 'Running');
    assert.deepEqual([fenced(agent)?.status, fenced(agent)?.reason], ['False', 'NamespaceNotFenced']);
  });

  it('makes no new pod after one was changed, and leaves those that run', async () => {
    const ref = { name: NAME };
    await world.client.patch(TYPES.admissionPolicies, ref, { spec: { failurePolicy: 'Ignore' } }, never);
    await world.agentWith('team-a', 'analyst', 'says so', (agent) => fenced(agent)?.reason === 'GuardMissing');
    await world.apply(agentOf('team-a', 'second'));
    const second = await world.agentWith('team-a', 'second', 'waits', (agent) => readyReason(agent) === 'GuardMissing');
    assert.match(messageOfReady(second), /was changed/);
    assert.equal((await world.pods('team-a')).length, 1);
  });
});
