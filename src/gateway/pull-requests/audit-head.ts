import { resourceType } from '../../kube/client/resource-path.ts';
import { RELEASE_OBJECTS } from '../../api/cluster.ts';
import { HEADS_MEMBER, parseSignedHeads } from '../../audit/signed-heads.ts';
import type { SignedHead } from '../../audit/stream-chain.ts';
import type { KubeReader } from '../../kube/client/kube-client.ts';
import type { KubeObject } from '../../kube/informer/store.ts';

const CONFIG_MAPS = resourceType('v1', 'configmaps', 'ConfigMap');

/**
 * The newest signed head of the audit stream, as the ConfigMap of the release has it. Undefined while there is none, and when the ConfigMap
 * has no readable heads: the operator reports that. Throws ApiError.
 */
export async function newestHead(
  client: Pick<KubeReader, 'get'>,
  namespace: string | undefined,
  signal: AbortSignal,
): Promise<SignedHead | undefined> {
  if (namespace === undefined) return undefined;
  const place = { namespace, name: RELEASE_OBJECTS.auditHeads };
  const found = await client.get<KubeObject & { data?: Record<string, string> }>(CONFIG_MAPS, place, signal);
  return parseSignedHeads(found?.data?.[HEADS_MEMBER] ?? '')?.at(-1);
}
