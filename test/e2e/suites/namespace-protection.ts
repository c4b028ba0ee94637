import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { podName } from '../../../src/operator/pods/pod-name.ts';
import type { ApiUser } from '../../cluster/api-client.ts';
import { forbiddenRequests } from '../../support/admission/forbidden-requests.ts';
import { isDeniedBy } from '../../support/admission/policies.ts';
import type { InstalledCluster } from '../support/installed-cluster.ts';
import { NamespaceAgents, agentObject, namespaceObject, type PodObject, policyObject } from '../support/fixture.ts';
import { pollAssertion } from '../../support/poll.ts';

const PROTECTED = 'protected';
const UNPROTECTED = 'unprotected';
/** Without enforced Pod Security, which would reject some requests first. */
const PROTECTION_LABELS = { 'temper.dev/agents': 'true', 'pod-security.kubernetes.io/enforce': 'privileged' };
const EDITOR: ApiUser = { user: 'edith', groups: ['system:authenticated'] };

/** Requests of a user with the role `edit` in a protected namespace. */
export function namespaceProtection(cluster: () => InstalledCluster): void {
  describe('a user with the role edit', () => {
    let pod: PodObject;
    const inUnprotected = () => new NamespaceAgents(cluster(), UNPROTECTED);
    const inProtected = () => new NamespaceAgents(cluster(), PROTECTED);

    before(async () => {
      const labels = { 'pod-security.kubernetes.io/warn': 'restricted' };
      await cluster().apply(namespaceObject(PROTECTED, PROTECTION_LABELS), namespaceObject(UNPROTECTED, labels));
      for (const namespace of [PROTECTED, UNPROTECTED]) {
        const binding = ['create', 'rolebinding', 'editors', '-n', namespace, '--clusterrole=edit', '--user=edith'];
        await cluster().kubectl(...binding);
        await cluster().apply(
          policyObject(namespace),
          agentObject(namespace, 'analyst', { suspend: namespace === UNPROTECTED }),
        );
      }
      await inProtected().waitForReason('analyst', 'Running');
      await inUnprotected().waitForReason('analyst', 'Suspended');
      pod = await inProtected().boundPod('analyst');
    });

    it('a user with the role edit cannot act as an agent or change its pod', async () => {
      const refused: string[] = [];
      const attempts = forbiddenRequests(pod.metadata.name);
      for (const {
        action: what,
        method,
        path: [api, rest],
        body,
        contentType,
      } of attempts) {
        const answer = await cluster().node.admin.call(method, `/${api}/namespaces/${PROTECTED}/${rest}`, {
          as: EDITOR,
          ...(body === undefined ? {} : { body }),
          ...(contentType === undefined ? {} : { contentType }),
        });
        assert.ok(isDeniedBy('namespace-protection', answer), `${what}: ${JSON.stringify(answer.body)}`);
        refused.push(what);
      }
      assert.ok(refused.length >= 11);
      assert.equal((await inProtected().boundPod('analyst')).metadata.uid, pod.metadata.uid);
    });

    it('the service accounts of the namespace have no access to its pods', async () => {
      for (const name of ['temper-agent', 'temper-users']) {
        const as = { user: `system:serviceaccount:${PROTECTED}:${name}`, groups: ['system:serviceaccounts'] };
        const path = `/api/v1/namespaces/${PROTECTED}/pods/${pod.metadata.name}`;
        assert.equal((await cluster().node.admin.call('GET', path, { as })).status, 403);
      }
    });

    it('a pod with the name of an agent pod in an unprotected namespace causes a condition and is not bound', async () => {
      const { metadata } = await inUnprotected().get('analyst');
      const name = podName({ name: 'analyst', uid: metadata.uid }, undefined);
      const conflictingPod = {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name, namespace: UNPROTECTED },
        spec: conflictingPodSpec(),
      };
      const path = `/api/v1/namespaces/${UNPROTECTED}/pods`;
      const made = await cluster().node.admin.call('POST', path, { as: EDITOR, body: conflictingPod });
      assert.equal(made.status, 201, JSON.stringify(made.body));
      await inUnprotected().patchSpec('analyst', { suspend: false });
      const message = await inUnprotected().waitForReason('analyst', 'PodNameConflict');
      assert.ok(message.includes(`kubectl delete pod ${name} --namespace ${UNPROTECTED}`), message);
      assert.equal((await inUnprotected().get('analyst')).status?.pod, undefined);
      await cluster().kubectl('delete', 'pod', name, '-n', UNPROTECTED, '--wait=false', '--grace-period=0', '--force');
      await inUnprotected().waitForReason('analyst', 'Running');
      await pollAssertion('one pod', async () => assert.equal((await inUnprotected().listPods()).length, 1));
    });
  });
}

/** A pod that differs from an agent's pod in everything except its name. */
function conflictingPodSpec() {
  const securityContext = { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } };
  return {
    containers: [{ name: 'agent', image: 'localhost/pause:1', imagePullPolicy: 'Never', securityContext }],
    securityContext: { runAsNonRoot: true, runAsUser: 65_534, seccompProfile: { type: 'RuntimeDefault' } },
    terminationGracePeriodSeconds: 0,
  };
}
