import type { Capability } from '../../api/v1alpha1/capability.ts';
import type { EmergentTool, ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import { capabilityEntry, type DiscoveryEntry, forgedEntry } from '../../discovery/entry.ts';
import { builtInNames } from '../../engine/built-in.ts';
import { asArtifact } from '../../forge/artifact-form.ts';
import { openArtifact } from '../../forge/open-artifact.ts';
import type { KubeObject } from '../../kube/store.ts';
import { isDigest, type Digest } from '../../lib/canonical.ts';
import type { Json } from '../../lib/json.ts';
import { objectName } from '../../tempering/object-name.ts';

/** What is kept of a Capability. */
export interface CatalogueObject extends KubeObject {
  /** Absent for an object that cannot be read. */
  readonly entry?: DiscoveryEntry;
}

/** What is kept of an EmergentTool: all but the tool itself. */
export interface StandingTool extends CatalogueObject {
  readonly digest?: Digest;
  readonly tier?: 'Agent' | 'Shared';
  /** The tool can be handed to a pod: its object holds it whole, and it has its digest. */
  readonly runnable?: boolean;
  readonly contributors?: readonly string[];
  readonly acceptedAt?: string;
}

/** On the object of a tool of tier Agent: whose it is. The object's name is made from it, so that it cannot be changed. */
const OWNER_LABEL = 'temper.dev/agent';

const BUILT_IN = builtInNames();

/** For the reflector of Capabilities: schemas, contents, examples and links are not kept. */
export function slimCapability(object: CatalogueObject): CatalogueObject {
  const metadata = slimMetadata(object);
  try {
    return { metadata, entry: capabilityEntry(object as unknown as Capability) };
  } catch {
    // What the API server let in under an older schema is none of the catalogue, and must not end the watch.
    return { metadata };
  }
}

/** For the reflector of EmergentTools: what is not in service is kept as a name alone. */
export function standingTool(object: StandingTool): StandingTool {
  const metadata = slimMetadata(object);
  try {
    return { metadata, ...standing(object as unknown as EmergentTool) };
  } catch {
    return { metadata };
  }
}

function slimMetadata({ metadata }: KubeObject): KubeObject['metadata'] {
  const { name, namespace, uid, resourceVersion } = metadata;
  return {
    name,
    ...(namespace === undefined ? {} : { namespace }),
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
  };
}

function standing({ metadata, spec, status }: EmergentTool): Omit<StandingTool, 'metadata'> {
  const { artifact, digest, tier, contributors = [] } = spec;
  if (status?.active !== true || !isDigest(digest)) return {};
  const agent = ownerOf(metadata, artifact, digest);
  if (tier === 'Agent' && agent === undefined) return {};
  const problem = problemOf(artifact, digest);
  const entry = forgedEntry(artifact, false);
  return {
    entry: {
      ...entry,
      ...(tier === 'Agent' && agent !== undefined ? { agent } : {}),
      ...(problem === undefined ? {} : { unavailable: problem }),
    },
    digest,
    tier,
    runnable: problem === undefined,
    contributors,
    acceptedAt: metadata.creationTimestamp ?? '',
  };
}

function ownerOf(metadata: EmergentTool['metadata'], artifact: ToolArtifact, digest: Digest): string | undefined {
  const agent = metadata.labels?.[OWNER_LABEL];
  if (agent === undefined) return undefined;
  const name = objectName(artifact.name, 'Agent', `${metadata.namespace ?? ''}/${agent}`, digest);
  return metadata.name === name ? agent : undefined;
}

/** Why no pod could run it, as a pod would find out. */
function problemOf(artifact: ToolArtifact, digest: Digest): string | undefined {
  if (artifact.implementation.mode === 'Sandbox' && artifact.implementation.source === undefined) {
    return 'its source is not kept in its object';
  }
  if (asArtifact(artifact as unknown as Json) === undefined) return 'its artifact has not the form of one';
  const open = openArtifact(artifact);
  if ('malformed' in open) return 'its artifact cannot be read';
  if (open.digest !== digest) return 'it does not have its digest';
  return BUILT_IN.has(artifact.name) ? 'its name is that of a built-in tool' : undefined;
}
