import type { EmergentTool } from '../../api/v1alpha1/emergenttool.ts';
import type { KubeReader } from '../../kube/client/kube-client.ts';
import type { KubeObject } from '../../kube/informer/store.ts';
import { isTemperError } from '../../lib/errors.ts';
import { artifactDigest } from '../../tempering/registry/serialization.ts';
import { TYPES } from '../kube/types.ts';
import type { StoredTool } from '../tool/stored-tool.ts';

/**
 * Whether the withheld source of a tool is lost, by the digest of the whole artifact. False while that is unknown, because NATS is
 * unreachable: the tool is then looked at again. Throws ApiError.
 */
export async function isSourceLost(
  reader: Pick<KubeReader, 'get'>,
  { metadata, facts }: StoredTool,
  signal: AbortSignal,
): Promise<boolean> {
  if (!facts.sourceWithheld) return false;
  const { namespace, name, uid } = metadata;
  try {
    const found = await reader.get<KubeObject & EmergentTool>(TYPES.emergentTools, { namespace, name }, signal);
    return found?.metadata.uid === uid && artifactDigest(found.spec.artifact) !== facts.digest;
  } catch (error) {
    if (isTemperError(error)) return false;
    throw error;
  }
}
