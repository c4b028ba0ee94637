import { API_VERSION } from '../../api/names.ts';
import type { ApprovalRequestSpec } from '../../api/v1alpha1/approvalrequest.ts';
import type { EmergentTool } from '../../api/v1alpha1/emergenttool.ts';
import { ApiError, type KubeClient } from '../../kube/client/kube-client.ts';
import type { KubeObject } from '../../kube/informer/store.ts';
import { TerminalError } from '../../kube/controller/result.ts';
import { artifactProblem } from '../../tempering/registry/stored-artifact.ts';
import { FIELD_MANAGER, MANAGED_LABEL, TYPES } from '../kube/types.ts';
import { sharedName, type StoredTool } from '../tool/stored-tool.ts';

/**
 * Creates the object of tier Shared, without an owner, from the object of tier Agent. It is in service only when the reconcile of that
 * object finds its Approval. Idempotent. Throws ApiError, and TerminalError when the source is gone.
 */
export async function shareTool(
  client: Pick<KubeClient, 'get' | 'create'>,
  { metadata, facts }: StoredTool,
  { nonce, contributors }: Pick<ApprovalRequestSpec, 'nonce'> & { contributors: readonly string[] },
  signal: AbortSignal,
): Promise<void> {
  const { namespace, name } = metadata;
  const stored = await client.get<KubeObject & EmergentTool>(TYPES.emergentTools, { namespace, name }, signal);
  const artifact = stored?.spec.artifact;
  if (artifact === undefined) throw new TerminalError(`EmergentTool "${name}" does not exist any more`);
  const problem = artifactProblem(artifact, facts.digest);
  if (problem !== undefined) throw new TerminalError(`EmergentTool "${name}" cannot be shared: ${problem}`);
  const object = {
    apiVersion: API_VERSION,
    kind: 'EmergentTool',
    metadata: { name: sharedName(namespace, facts.tool, facts.digest), namespace, labels: { ...MANAGED_LABEL } },
    spec: { artifact, digest: facts.digest, tier: 'Shared', contributors, requestNonce: nonce },
  };
  try {
    await client.create<KubeObject>(TYPES.emergentTools, object, signal, { manager: FIELD_MANAGER });
  } catch (error) {
    if (!(error instanceof ApiError) || error.reason !== 'AlreadyExists') throw error;
  }
}
