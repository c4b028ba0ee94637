import type { EmergentTool, ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import { splitReference } from '../../forge/request.ts';
import type { KubeReader } from '../../kube/client/kube-client.ts';
import type { KubeObject } from '../../kube/informer/store.ts';
import { isDigest, type Digest } from '../../lib/canonical.ts';
import { objectName } from '../../tempering/registry/object-name.ts';
import { artifactDigest } from '../../tempering/registry/serialization.ts';
import { TYPES } from '../kube/types.ts';
import { agentToolName } from './tool-object.ts';

/** Forged tools that a tool calls, also through others. */
export interface Dependencies {
  /** By the digest that a step pins. */
  readonly artifacts: ReadonlyMap<string, ToolArtifact>;
  readonly missing: readonly string[];
}

/** A composed tool calls at most 20 tools, each at most five deep; a hostile one pins as many different tools as it can. */
const MAX_DEPENDENCIES = 40;

/** Reads the active tools of tiers Agent and Shared that the steps pin. A tool must not outlive what it calls. */
export async function readDependencies(
  client: Pick<KubeReader, 'get'>,
  agent: { namespace: string; name: string },
  artifact: ToolArtifact,
  signal: AbortSignal,
): Promise<Dependencies> {
  const artifacts = new Map<string, ToolArtifact>();
  const missing: string[] = [];
  const pending = pinsOf(artifact);
  for (let pin = pending.shift(); pin !== undefined; pin = pending.shift()) {
    if (artifacts.has(pin.digest)) continue;
    if (artifacts.size >= MAX_DEPENDENCIES) {
      missing.push(`it calls more than ${MAX_DEPENDENCIES} forged tools; forge one with fewer steps`);
      break;
    }
    const found = await readActive(client, agent, pin, signal);
    if (found === undefined) missing.push(`it calls "${pin.name}", which is not at tier Agent or Shared`);
    else {
      artifacts.set(pin.digest, found);
      pending.push(...pinsOf(found));
    }
  }
  return { artifacts, missing };
}

interface Pin {
  name: string;
  digest: Digest;
}

function pinsOf({ implementation }: ToolArtifact): Pin[] {
  return (implementation.steps ?? []).flatMap(({ tool }) => {
    const { name, digest } = splitReference(tool);
    return isDigest(digest) ? [{ name, digest }] : [];
  });
}

/** Its name follows from its tier, so that it is one read and no list. The digest is computed again. */
async function readActive(
  client: Pick<KubeReader, 'get'>,
  agent: { namespace: string; name: string },
  { name, digest }: Pin,
  signal: AbortSignal,
): Promise<ToolArtifact | undefined> {
  const { namespace } = agent;
  for (const object of [agentToolName(agent, name, digest), objectName(name, 'Shared', `${namespace}/`, digest)]) {
    const found = await client.get<KubeObject & Pick<EmergentTool, 'spec' | 'status'>>(
      TYPES.emergentTools,
      { namespace, name: object },
      signal,
    );
    if (found?.status?.active === true && artifactDigest(found.spec.artifact) === digest) return found.spec.artifact;
  }
  return undefined;
}
