import { readdirSync, readFileSync } from 'node:fs';
import { parse } from 'yaml';
import type { ApiAnswer } from './api-client.ts';
import type { ControlPlane } from './control-plane.ts';
import { type ChartObject, renderChart } from './helm.ts';
import { createAll, createNamespace, until } from './objects.ts';

/** Did this guard refuse it, and not RBAC or a schema? */
export function refusedBy(guard: string, { status, body }: ApiAnswer): boolean {
  return (
    (status === 403 || status === 422) &&
    String(body['message']).includes(`ValidatingAdmissionPolicy 'temper-${guard}'`)
  );
}

export function projectCrds(): ChartObject[] {
  const folder = new URL('../../crds/', import.meta.url);
  const files = readdirSync(folder).filter((file) => file.endsWith('.yaml'));
  return files.map((file) => parse(readFileSync(new URL(file, folder), 'utf8')) as ChartObject);
}

/** CRDs that are served. */
export async function installCrds(plane: ControlPlane): Promise<void> {
  const crds = projectCrds();
  await createAll(plane, crds);
  for (const { metadata } of crds) {
    const path = `/apis/temper.dev/v1alpha1/${metadata.name.split('.')[0]}`;
    await until(
      metadata.name,
      () => plane.admin.call('GET', path),
      ({ status }) => status === 200,
    );
  }
}

/** The objects of the chart that guard the cluster. */
export async function guardObjects(...args: string[]): Promise<ChartObject[]> {
  const objects = await renderChart(...args);
  return objects.filter(
    ({ metadata }) => metadata.labels?.['temper.dev/guard'] === 'true' || metadata.name === 'temper-approvers',
  );
}

/** Installs CRDs and guards, and waits until every guard was seen to refuse. Makes the namespaces `temper-system` and `probe`. */
export async function installGuards(plane: ControlPlane, ...args: string[]): Promise<void> {
  await installCrds(plane);
  await createNamespace(plane, 'temper-system');
  await createAll(plane, await guardObjects(...args));
  await createNamespace(plane, 'probe', { 'temper.dev/agents': 'true' });
  await inForce(plane);
}

const APPROVAL = {
  apiVersion: 'temper.dev/v1alpha1',
  kind: 'Approval',
  metadata: { name: 'probe', namespace: 'probe' },
  spec: {
    decision: 'Approve',
    nonce: 'probeprobeprobeprobe',
    approvedBy: { username: 'nobody' },
    subject: { promotion: { tool: 'probe', digest: `sha256:${'0'.repeat(64)}`, tier: 'Shared' } },
  },
};

/** Each guard must refuse a dry run. What one change needs to be seen to work is seen for it alone: they come into force one by one. */
async function inForce(plane: ControlPlane): Promise<void> {
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'probe' } };
  const doors = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'temper-doors' } };
  const probes = [
    ['fence', '/api/v1/namespaces/probe/secrets', secret],
    ['reserved', '/api/v1/namespaces/probe/configmaps', doors],
    ['approvals', '/apis/temper.dev/v1alpha1/namespaces/probe/approvals', APPROVAL],
  ] as const;
  for (const [guard, path, body] of probes) {
    const dryRun = () => plane.admin.call('POST', `${path}?dryRun=All`, { body });
    await until(`temper-${guard} refuses`, dryRun, (answer) => refusedBy(guard, answer));
  }
}
