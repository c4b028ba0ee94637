import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { digestOf } from '../../../src/lib/canonical.ts';
import { type Clock, systemClock } from '../../../src/lib/clock.ts';
import type { Json } from '../../../src/lib/json.ts';
import { type PlainObject, type StoredAgent, TYPES } from '../../../src/operator/kube/types.ts';
import { type ApiServerFixture, startApiServerFixture } from '../../support/api-server/api-server-fixture.ts';
import { buildAgent, readyMessage, buildTrustPolicy, readyReason } from '../../support/builders.ts';
import { OPERATOR_CONFIG, type RunningOperator, startOperator } from '../../support/operator/start-operator.ts';
import { NEVER_ABORTED } from '../../support/stubs.ts';

const NAME = 'temper-namespace-protection';
/** The rule of the protection policy that the operator probes, with all defaults. */
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

function admissionObject(kind: string, spec: object) {
  const annotations = { 'temper.dev/admission-policy-digest': digestOf(spec as Json) };
  const metadata = { name: NAME, labels: { 'temper.dev/admission-policy': 'true' }, annotations };
  return { apiVersion: 'admissionregistration.k8s.io/v1', kind, metadata, spec };
}

describe('an operator and the admission policies it needs', () => {
  let apiServer: ApiServerFixture;
  let operator: RunningOperator;
  /** Added to the time of the operator, so that the test does not wait for a minute. */
  let passedMs = 0;
  const clock: Clock = { ...systemClock, monotonic: () => systemClock.monotonic() + passedMs };
  const protectedCondition = (agent: StoredAgent) => agent.status?.conditions?.find(({ type }) => type === 'Protected');
  const applyAgent = async (namespace: string) => {
    await apiServer.apply(buildTrustPolicy(namespace));
    await apiServer.apply(buildAgent(namespace, 'analyst'));
  };

  before(async () => {
    apiServer = await startApiServerFixture({ controllerManager: true });
    await apiServer.createNamespace('team-a');
    const labels = { 'temper.dev/agents': 'true' };
    await apiServer.client.patch<PlainObject>(
      TYPES.namespaces,
      { name: 'team-a' },
      { metadata: { labels } },
      NEVER_ABORTED,
    );
    const admissionPolicies = { policies: { [NAME]: digestOf(SPEC) } };
    operator = await startOperator(apiServer, { ...OPERATOR_CONFIG, admissionPolicies }, { clock });
  });

  after(async () => {
    await operator?.stop();
    await apiServer?.[Symbol.asyncDispose]();
  });

  it('the operator creates no pod until the admission policies are enforced', async () => {
    await applyAgent('team-a');
    const waiting = await apiServer.waitForAgent(
      'team-a',
      'analyst',
      'waits',
      (agent) => readyReason(agent) === 'AdmissionPolicyMissing',
    );
    assert.match(readyMessage(waiting), /ValidatingAdmissionPolicy "temper-namespace-protection" does not exist/);
    assert.deepEqual(await apiServer.listPods('team-a'), []);
    await apiServer.apply(admissionObject('ValidatingAdmissionPolicy', SPEC));
    await apiServer.apply(admissionObject('ValidatingAdmissionPolicyBinding', BINDING));
    const agent = await apiServer.waitForAgent(
      'team-a',
      'analyst',
      'runs',
      (found) => readyReason(found) === 'Running',
    );
    assert.deepEqual(
      [protectedCondition(agent)?.status, protectedCondition(agent)?.reason],
      ['True', 'NamespaceProtected'],
    );
  });

  it('the operator reports an unprotected namespace and still runs agents in it', async () => {
    await apiServer.createNamespace('open');
    await applyAgent('open');
    const agent = await apiServer.waitForAgent('open', 'analyst', 'runs', (found) => readyReason(found) === 'Running');
    assert.deepEqual(
      [protectedCondition(agent)?.status, protectedCondition(agent)?.reason],
      ['False', 'NamespaceNotProtected'],
    );
  });

  it('the operator creates no new pod after a policy was changed, and keeps running pods', async () => {
    const ref = { name: NAME };
    await apiServer.client.patch(TYPES.admissionPolicies, ref, { spec: { failurePolicy: 'Ignore' } }, NEVER_ABORTED);
    await apiServer.apply(buildAgent('team-a', 'second'));
    const second = await apiServer.waitForAgent(
      'team-a',
      'second',
      'waits',
      (agent) => readyReason(agent) === 'AdmissionPolicyMissing',
    );
    const during = await apiServer.getAgent('team-a', 'analyst');
    assert.deepEqual([protectedCondition(during)?.reason, readyReason(during)], ['NamespaceProtected', 'Running']);
    passedMs += 60_000;
    await apiServer.waitForAgent(
      'team-a',
      'analyst',
      'reports the policy',
      (agent) => protectedCondition(agent)?.reason === 'AdmissionPolicyMissing',
    );
    assert.match(readyMessage(second), /was changed/);
    assert.equal((await apiServer.listPods('team-a')).length, 1);
  });
});
