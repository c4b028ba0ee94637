import { LABELS } from '../../api/cluster.ts';
import type { Capability } from '../../api/v1alpha1/capability.ts';
import type { EmergentTool, ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import { capabilityEntry, type DiscoveryEntry, forgedEntry } from '../../discovery/entry.ts';
import { type BrokeredCapability, brokeredCapability } from '../../capabilities/capability-object.ts';
import { builtInNames } from '../../engine/built-in.ts';
import type { KubeObject } from '../../kube/informer/store.ts';
import { isDigest, type Digest } from '../../lib/canonical.ts';
import { objectName } from '../../tempering/registry/object-name.ts';
import { storedToolProblem } from '../../tempering/registry/stored-artifact.ts';

/** The cached members of a Capability. */
export interface CatalogObject extends KubeObject {
  /** Absent for an invalid object. */
  readonly entry?: DiscoveryEntry;
  /** Of a Capability whose tool the gateway executes. */
  readonly brokered?: BrokeredCapability;
}

/** The cached members of an EmergentTool: all but the artifact. */
export interface PromotedTool extends CatalogObject {
  readonly digest?: Digest;
  readonly tier?: 'Agent' | 'Shared';
  /** A pod can run the tool: its object contains the complete artifact, and the digest matches. */
  readonly runnable?: boolean;
  readonly contributors?: readonly string[];
  readonly sourceWithheld?: boolean;
  readonly acceptedAt?: string;
}

const BUILT_IN = builtInNames();

/** Transform of the Capability reflector: drops contents and examples, and the schemas of tools that the gateway does not execute. */
export function pruneCapability(object: CatalogObject): CatalogObject {
  const metadata = pruneMetadata(object);
  try {
    const capability = object as unknown as Capability;
    const entry = capabilityEntry(capability);
    const brokered = brokeredCapability(capability);
    return { metadata, entry, ...(brokered === undefined ? {} : { brokered }) };
  } catch {
    // An object that an older schema accepted is not listed, and must not end the watch.
    return { metadata };
  }
}

/** Transform of the EmergentTool reflector: keeps only the metadata of tools that are not in service. */
export function prunePromotedTool(object: PromotedTool): PromotedTool {
  const metadata = pruneMetadata(object);
  try {
    return { metadata, ...catalogMembers(object as unknown as EmergentTool) };
  } catch {
    return { metadata };
  }
}

function pruneMetadata({ metadata }: KubeObject): KubeObject['metadata'] {
  const { name, namespace, uid, resourceVersion } = metadata;
  return {
    name,
    ...(namespace === undefined ? {} : { namespace }),
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
  };
}

function catalogMembers({ metadata, spec, status }: EmergentTool): Omit<PromotedTool, 'metadata'> {
  const { artifact, digest, tier, contributors = [], withheldSource } = spec;
  if (status?.active !== true || !isDigest(digest)) return {};
  const agent = ownerOf(metadata, artifact, digest);
  if (tier === 'Agent' && agent === undefined) return {};
  const problem = problemOf(spec);
  const entry = forgedEntry(artifact);
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
    sourceWithheld: withheldSource !== undefined,
    acceptedAt: metadata.creationTimestamp ?? '',
  };
}

function ownerOf(metadata: EmergentTool['metadata'], artifact: ToolArtifact, digest: Digest): string | undefined {
  // The object's name is derived from the label, so that a change is detected.
  const agent = metadata.labels?.[LABELS.agent];
  if (agent === undefined) return undefined;
  const name = objectName(artifact.name, 'Agent', `${metadata.namespace ?? ''}/${agent}`, digest);
  return metadata.name === name ? agent : undefined;
}

/** Why a pod cannot run the tool: the same checks as in the pod. */
function problemOf(spec: EmergentTool['spec']): string | undefined {
  return (
    storedToolProblem(spec) ?? (BUILT_IN.has(spec.artifact.name) ? 'its name belongs to a built-in tool' : undefined)
  );
}
