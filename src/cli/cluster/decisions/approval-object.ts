import { API_VERSION } from '../../../api/names.ts';
import type { Approval, ApprovalSpec } from '../../../api/v1alpha1/approval.ts';
import type { KubeObject } from '../../../kube/informer/store.ts';
import { ApiError } from '../../../kube/client/kube-client.ts';
import { sha256 } from '../../../lib/canonical.ts';
import { TemperError } from '../../../lib/errors.ts';
import { printable } from '../../../lib/printable.ts';
import type { CliIo } from '../../io.ts';
import { type Cluster, toTemperError } from '../cluster.ts';
import { clusterKind } from '../cluster-kinds.ts';

export interface DecisionFields extends Omit<ApprovalSpec, 'approvedBy'> {
  /** The beginning of the name of the object; the caller and the decision follow. */
  readonly name: string;
}

const MAX_NAME = 253;
const HASH_CHARACTERS = 8;

/** An Approval by the caller, as the API server knows the caller. The name is the same when the caller decides the same twice. */
export async function approvalObject(
  cluster: Cluster,
  { name, ...fields }: DecisionFields,
  { signal }: CliIo,
): Promise<Approval> {
  const { username, uid } = await cluster.kube.whoAmI(signal).catch((error: unknown) => {
    throw toTemperError(error, 'reading your own name', cluster);
  });
  return {
    apiVersion: API_VERSION,
    kind: 'Approval',
    metadata: { name: approvalName(name, username, fields), namespace: cluster.namespace },
    spec: { ...fields, approvedBy: uid === undefined ? { username } : { username, uid } },
  };
}

/** `csv-rows-k4q7p-alice`. A name that cannot be part of an object name is replaced by its hash. */
function approvalName(name: string, username: string, fields: Omit<ApprovalSpec, 'approvedBy'>): string {
  const plain = username.toLowerCase().replace(/@.*$/, '');
  const short = sha256(`${username} ${fields.decision} ${fields.nonce}`).slice('sha256:'.length);
  const isPlain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(plain) && plain.length <= 63;
  const suffix = isPlain ? plain : short.slice(0, HASH_CHARACTERS);
  const decision = fields.decision === 'Approve' ? '' : `-${fields.decision.toLowerCase()}`;
  return `${name}-${suffix}${decision}`.slice(-MAX_NAME).replace(/^[^a-z0-9]+/, '');
}

/** Creates it and returns its name. Throws TEMPER_USAGE when the caller decided before, and errors of the API server as they are. */
export async function createApproval(cluster: Cluster, approval: Approval, { signal }: CliIo): Promise<string> {
  const { name } = approval.metadata;
  try {
    await cluster.kube.create<KubeObject>(clusterKind('approvals'), approval, signal);
    return name;
  } catch (error) {
    if (!(error instanceof ApiError) || error.reason !== 'AlreadyExists')
      throw toTemperError(error, `creating approvals ${name}`, cluster);
    throw new TemperError(
      'TEMPER_USAGE',
      `approval "${printable(name, MAX_NAME)}" exists in ${cluster.location}: you decided this before; its condition Effective shows whether it applies`,
    );
  }
}
