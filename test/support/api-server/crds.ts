import { readdirSync, readFileSync } from 'node:fs';
import { parse } from 'yaml';
import type { ApiClient } from '../../cluster/api-client.ts';
import type { ChartObject } from '../../cluster/helm.ts';
import { pollValue } from '../poll.ts';

const CRDS = new URL('../../../crds/', import.meta.url);

/** The CRDs of the project. */
function projectCrds(): ChartObject[] {
  const files = readdirSync(CRDS).filter((file) => file.endsWith('.yaml'));
  return files.map((file) => parse(readFileSync(new URL(file, CRDS), 'utf8')) as ChartObject);
}

/** Creates the CRDs of the project and waits until the API server serves them. */
export async function installCrds(admin: ApiClient): Promise<void> {
  await Promise.all(projectCrds().map((crd) => installCrd(admin, crd)));
}

async function installCrd(admin: ApiClient, crd: ChartObject): Promise<void> {
  const { status, body } = await admin.call('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
    body: crd,
  });
  if (status !== 201) throw new Error(`${crd.metadata.name}: ${JSON.stringify(body)}`);
  const path = `/apis/temper.dev/v1alpha1/${crd.metadata.name.split('.')[0]}`;
  const served = () => admin.call('GET', path);
  await pollValue(`${crd.metadata.name} to be served`, served, (answer) => answer.status === 200);
}
