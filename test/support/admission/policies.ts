import type { ApiResponse } from '../../cluster/api-client.ts';
import type { ControlPlane } from '../../cluster/control-plane.ts';
import { type ChartObject, renderChart } from '../../cluster/helm.ts';
import { createAll, createNamespace } from '../../cluster/objects.ts';
import { installCrds } from '../api-server/crds.ts';
import { pollValue } from '../poll.ts';

/** Whether this ValidatingAdmissionPolicy denied the request (and not RBAC or the schema). */
export function isDeniedBy(policy: string, { status, body }: ApiResponse): boolean {
  return (
    (status === 403 || status === 422) &&
    String(body['message']).includes(`ValidatingAdmissionPolicy 'temper-${policy}'`)
  );
}

/** The chart's admission policies, their bindings and the list of approvers. */
export async function admissionObjects(...args: string[]): Promise<ChartObject[]> {
  const objects = await renderChart(...args);
  return objects.filter(
    ({ metadata }) =>
      metadata.labels?.['temper.dev/admission-policy'] === 'true' || metadata.name === 'temper-approvers',
  );
}

/** Creates the namespaces `temper-system` and `probe`, installs CRDs and admission policies, and waits until every policy is enforced. */
export async function installAdmissionPolicies(plane: ControlPlane, ...args: string[]): Promise<void> {
  await installCrds(plane.admin);
  await createNamespace(plane, 'temper-system');
  await enforceAdmissionPolicies(plane, ...args);
}

/** The same for an API server that has the CRDs and the namespace of the release. */
export async function enforceAdmissionPolicies(plane: ControlPlane, ...args: string[]): Promise<void> {
  await createAll(plane, await admissionObjects(...args));
  await createNamespace(plane, 'probe', { 'temper.dev/agents': 'true' });
  await waitUntilEnforced(plane);
}

const APPROVAL = {
  apiVersion: 'temper.dev/v1alpha1',
  kind: 'Approval',
  metadata: { name: 'probe', namespace: 'probe' },
  spec: {
    decision: 'Approve',
    nonce: 'probeprobeprobeprobe',
    approvedBy: { username: 'probe' },
    subject: { promotion: { tool: 'probe', digest: `sha256:${'0'.repeat(64)}`, tier: 'Shared' } },
  },
};

const APPROVAL_REQUEST = {
  apiVersion: 'temper.dev/v1alpha1',
  kind: 'ApprovalRequest',
  metadata: { name: 'probe', namespace: 'probe' },
  spec: {
    type: 'PromoteTool',
    agent: { name: 'probe', uid: 'u-1' },
    nonce: 'probeprobeprobeprobe',
    summary: 'probe',
    risk: 'low',
    subject: { promotion: { tool: 'probe', digest: `sha256:${'0'.repeat(64)}`, tier: 'Shared' } },
  },
};

/** Waits until each policy denies a dry run. The policies are probed one by one, because the API server starts to enforce them at different times. */
async function waitUntilEnforced(plane: ControlPlane): Promise<void> {
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'probe' } };
  const endpoints = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'temper-endpoints' } };
  const probes = [
    ['namespace-protection', '/api/v1/namespaces/probe/secrets', secret],
    ['config-maps', '/api/v1/namespaces/probe/configmaps', endpoints],
    ['reserved', '/apis/temper.dev/v1alpha1/namespaces/probe/approvalrequests', APPROVAL_REQUEST],
    ['approvals', '/apis/temper.dev/v1alpha1/namespaces/probe/approvals', APPROVAL],
  ] as const;
  for (const [policy, path, body] of probes) {
    const dryRun = () => plane.admin.call('POST', `${path}?dryRun=All`, { body });
    await pollValue(`temper-${policy} denies a dry run`, dryRun, (answer) => isDeniedBy(policy, answer));
  }
}
