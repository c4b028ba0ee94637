import { ANNOTATIONS, LABELS } from '../../api/cluster.ts';
import type { EmergentTool, EmergentToolSpec, ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import { type Digest, isDigest } from '../../lib/canonical.ts';
import { objectName } from '../../tempering/registry/object-name.ts';
import { shapesOf, type ToolShapes } from '../../tempering/examination/redundancy/schema-shape.ts';
import { storedToolProblem } from '../../tempering/registry/stored-artifact.ts';
import type { Stored } from '../kube/types.ts';

/** A forged tool that a step calls: `name@digest`, or a name alone. */
interface ToolStep {
  readonly name: string;
  readonly digest: Digest | undefined;
}

/** What the operator keeps of the spec of an EmergentTool: all but the artifact, which may have 128 KiB. */
export interface ToolFacts {
  readonly tool: string;
  readonly digest: Digest;
  readonly tier: EmergentToolSpec['tier'];
  readonly contributors: readonly string[];
  readonly requestNonce: string | undefined;
  readonly mode: ToolArtifact['implementation']['mode'];
  readonly requires: ToolArtifact['requires'];
  readonly steps: readonly ToolStep[];
  /** Of its schemas. */
  readonly shapes: ToolShapes;
  /** The agent of a tool of tier Agent, by its label. */
  readonly agent: string | undefined;
  /** The object has a marker in the place of its source. */
  readonly sourceWithheld: boolean;
  /** The annotation about the tool that leaves for this one. */
  readonly replaces: string | undefined;
  /** Why no agent can run the artifact, or the object is not the one that its content names. */
  readonly problem: string | undefined;
}

export type StoredTool = Stored<Omit<EmergentTool, 'spec'>> & { readonly facts: ToolFacts };

const MAX_ANNOTATION = 1_000;
const NO_DIGEST: Digest = `sha256:${'0'.repeat(64)}`;
const UNREADABLE: ToolFacts = {
  tool: '',
  digest: NO_DIGEST,
  tier: 'Agent',
  contributors: [],
  requestNonce: undefined,
  mode: 'Sandbox',
  requires: { apis: [], domains: [], paths: [] },
  steps: [],
  shapes: { input: undefined, output: undefined },
  agent: undefined,
  sourceWithheld: false,
  replaces: undefined,
  problem: 'its spec cannot be read',
};

/** Transform of the reflector: an object that an older CRD accepted must not stop the informer. */
export function pruneTool(object: Stored<EmergentTool>): StoredTool {
  const { apiVersion, kind, metadata, status } = object;
  return {
    apiVersion,
    kind,
    metadata: pruneMetadata(metadata),
    facts: factsOf(object),
    ...(status === undefined ? {} : { status }),
  };
}

function pruneMetadata(metadata: StoredTool['metadata']): StoredTool['metadata'] {
  const { name, namespace, uid, resourceVersion, generation, creationTimestamp } = metadata;
  const { deletionTimestamp, ownerReferences } = metadata;
  return {
    name,
    namespace,
    uid,
    resourceVersion,
    generation,
    creationTimestamp,
    ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
    ...(ownerReferences === undefined ? {} : { ownerReferences }),
  };
}

function factsOf({ metadata, spec }: Stored<EmergentTool>): ToolFacts {
  try {
    const { artifact, digest, tier, contributors = [], requestNonce, withheldSource } = spec;
    const { implementation, requires, name } = artifact;
    const agent = metadata.labels?.[LABELS.agent];
    return {
      tool: name,
      digest: isDigest(digest) ? digest : NO_DIGEST,
      tier,
      contributors,
      requestNonce,
      mode: implementation.mode,
      requires,
      steps: (implementation.steps ?? []).map(({ tool }) => stepOf(tool)),
      shapes: shapesOf(artifact),
      agent,
      sourceWithheld: withheldSource !== undefined,
      replaces: metadata.annotations?.[ANNOTATIONS.replaces]?.slice(0, MAX_ANNOTATION),
      problem: storedToolProblem(spec) ?? nameProblem(metadata, { name, tier, agent, digest }),
    };
  } catch {
    return UNREADABLE;
  }
}

function stepOf(reference: string): ToolStep {
  const [name = '', digest] = reference.split('@');
  return { name, digest: isDigest(digest) ? digest : undefined };
}

/** The name follows from tier, owner and digest, so one tool has one object, and a label that was changed is detected. */
function nameProblem(
  { name: actual, namespace }: StoredTool['metadata'],
  { name, tier, agent, digest }: { name: string; tier: string; agent: string | undefined; digest: string },
): string | undefined {
  if (!isDigest(digest)) return 'its digest is malformed';
  if (tier === 'Agent' && agent === undefined) return `it has no label ${LABELS.agent}`;
  const expected =
    tier === 'Shared'
      ? sharedName(namespace, name, digest)
      : objectName(name, 'Agent', `${namespace}/${agent}`, digest);
  return actual === expected ? undefined : `the name of its object must be ${expected}`;
}

/** The name of the object of a tool at tier Shared, which has no owner but its namespace. */
export function sharedName(namespace: string, tool: string, digest: Digest): string {
  return objectName(tool, 'Shared', `${namespace}/`, digest);
}
