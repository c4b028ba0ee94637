import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { podName } from '../../src/operator/agent/pod-name.ts';
import type { Caller } from '../cluster/api-client.ts';
import { fenceAttempts } from '../cluster/fence-attempts.ts';
import { refusedBy } from '../cluster/guards.ts';
import type { Installation } from './installation.ts';
import { Agents, agentObject, eventually, namespaceObject, type PodObject, policyObject } from './scene.ts';

const FENCED = 'fenced';
const OPEN = 'unfenced';
/** Pod Security would refuse some of it first. */
const FENCE_ALONE = { 'temper.dev/agents': 'true', 'pod-security.kubernetes.io/enforce': 'privileged' };
const EDITOR: Caller = { user: 'edith', groups: ['system:authenticated'] };

/** What somebody who may edit a namespace tries there. */
export function theFence(installation: () => Installation): void {
  describe('somebody bound to the role edit', () => {
    let pod: PodObject;
    const open = () => new Agents(installation(), OPEN);
    const fenced = () => new Agents(installation(), FENCED);

    before(async () => {
      const labels = { 'pod-security.kubernetes.io/warn': 'restricted' };
      await installation().apply(namespaceObject(FENCED, FENCE_ALONE), namespaceObject(OPEN, labels));
      for (const namespace of [FENCED, OPEN]) {
        const binding = ['create', 'rolebinding', 'editors', '-n', namespace, '--clusterrole=edit', '--user=edith'];
        await installation().kubectl(...binding);
        await installation().apply(
          policyObject(namespace),
          agentObject(namespace, 'analyst', { suspend: namespace === OPEN }),
        );
      }
      await fenced().until('analyst', 'Running');
      await open().until('analyst', 'Suspended');
      pod = await fenced().pod('analyst');
    });

    it('is refused whatever would make them the agent', async () => {
      const refused: string[] = [];
      const attempts = fenceAttempts(pod.metadata.name);
      for (const {
        what,
        method,
        path: [api, rest],
        body,
        contentType,
      } of attempts) {
        const answer = await installation().node.admin.call(method, `/${api}/namespaces/${FENCED}/${rest}`, {
          as: EDITOR,
          ...(body === undefined ? {} : { body }),
          ...(contentType === undefined ? {} : { contentType }),
        });
        assert.ok(refusedBy('fence', answer), `${what}: ${JSON.stringify(answer.body)}`);
        refused.push(what);
      }
      assert.ok(refused.length >= 11);
      assert.equal((await fenced().pod('analyst')).metadata.uid, pod.metadata.uid);
    });

    it('is refused as a service account of the namespace as well', async () => {
      for (const name of ['temper-agent', 'temper-people']) {
        const as = { user: `system:serviceaccount:${FENCED}:${name}`, groups: ['system:serviceaccounts'] };
        const path = `/api/v1/namespaces/${FENCED}/pods/${pod.metadata.name}`;
        assert.equal((await installation().node.admin.call('GET', path, { as })).status, 403);
      }
    });

    it('who squats on the name of a pod, where no fence is, gets a condition and not the agent', async () => {
      const { metadata } = await open().state('analyst');
      const name = podName({ name: 'analyst', uid: metadata.uid }, undefined);
      const squatter = { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: OPEN }, spec: squattingSpec() };
      const path = `/api/v1/namespaces/${OPEN}/pods`;
      const made = await installation().node.admin.call('POST', path, { as: EDITOR, body: squatter });
      assert.equal(made.status, 201, JSON.stringify(made.body));
      await open().spec('analyst', { suspend: false });
      const message = await open().until('analyst', 'PodNameTaken');
      assert.ok(message.includes(`kubectl delete pod ${name} --namespace ${OPEN}`), message);
      assert.equal((await open().state('analyst')).status?.pod, undefined);
      await installation().kubectl('delete', 'pod', name, '-n', OPEN, '--wait=false', '--grace-period=0', '--force');
      await open().until('analyst', 'Running');
      await eventually(async () => assert.equal((await open().pods()).length, 1));
    });
  });
}

/** A pod that would be taken for the agent's by its name alone. */
function squattingSpec() {
  const securityContext = { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } };
  return {
    containers: [{ name: 'agent', image: 'localhost/pause:1', imagePullPolicy: 'Never', securityContext }],
    securityContext: { runAsNonRoot: true, runAsUser: 65_534, seccompProfile: { type: 'RuntimeDefault' } },
    terminationGracePeriodSeconds: 0,
  };
}
