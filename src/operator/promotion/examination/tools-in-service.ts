import type { EmergentTool } from '../../../api/v1alpha1/emergenttool.ts';
import { isPure } from '../../../forge/compose/purity.ts';
import type { KubeReader } from '../../../kube/client/kube-client.ts';
import type { KubeObject } from '../../../kube/informer/store.ts';
import type { ComparedTool, ToolsInService } from '../../../tempering/examination/redundancy/compared-tool.ts';
import { bySimilarity } from '../../../tempering/examination/redundancy/similar-tools.ts';
import { artifactDigest } from '../../../tempering/registry/serialization.ts';
import type { RegisteredTool } from '../../../tempering/types.ts';
import type { Cache } from '../../kube/cache.ts';
import { TYPES } from '../../kube/types.ts';
import { isVisibleTo } from '../gaps.ts';
import type { StoredTool } from '../../tool/stored-tool.ts';
import { TOOL_INDEX } from '../../tool/tool-index.ts';

export interface ServiceDeps {
  readonly client: Pick<KubeReader, 'get'>;
  readonly tools: Pick<Cache<StoredTool>, 'byIndex'>;
}

/** Objects that are read. The operator keeps no artifact, so their names choose them. */
const MAX_READ = 16;

/**
 * The tools of the agent and of its namespace that an examined tool is compared with. The order depends on names alone, because every
 * round of the examination has to find the same tools. Throws ApiError.
 */
export async function toolsInService(
  { client, tools }: ServiceDeps,
  agent: { namespace: string; uid: string },
  { artifact, digest }: RegisteredTool,
  signal: AbortSignal,
): Promise<ToolsInService> {
  const others = tools
    .byIndex(TOOL_INDEX.namespace, agent.namespace)
    .filter((other) => isInService(other, agent.uid))
    .filter(({ facts }) => facts.digest !== digest && facts.tool !== artifact.name)
    .toSorted((first, second) => (first.metadata.name < second.metadata.name ? -1 : 1));
  const comparable = isPure(artifact, () => false) ? others.filter(isComparable) : [];
  const named = comparable.map((tool) => ({ name: tool.facts.tool, description: '', tool }));
  const read: ComparedTool[] = [];
  for (const { tool } of bySimilarity(artifact, named).slice(0, MAX_READ)) {
    const compared = await readTool(client, tool, signal);
    if (compared !== undefined) read.push(compared);
  }
  return { tools: read, incomparable: others.length - comparable.length };
}

function isInService({ metadata, facts, status }: StoredTool, agentUid: string): boolean {
  if (status?.active !== true || facts.problem !== undefined) return false;
  return isVisibleTo({ metadata, facts }, agentUid);
}

/** The pod gets no tools that another composed tool calls. */
function isComparable({ facts: { mode, requires, steps } }: StoredTool): boolean {
  return mode === 'Sandbox' && steps.length === 0 && isPure({ requires, implementation: { mode } }, () => false);
}

/** Undefined for an object that changed meanwhile, and for one without its source. The digest is computed again. */
async function readTool(
  client: ServiceDeps['client'],
  { metadata: { namespace, name }, facts: { digest, tier } }: StoredTool,
  signal: AbortSignal,
): Promise<ComparedTool | undefined> {
  const object = await client.get<KubeObject & Pick<EmergentTool, 'spec'>>(
    TYPES.emergentTools,
    { namespace, name },
    signal,
  );
  const artifact = object?.spec.artifact;
  if (artifact?.implementation.source === undefined || artifactDigest(artifact) !== digest) return undefined;
  // Inputs of uses may be those of another agent, and a pod has inputs of one agent alone.
  return { artifact, tier: tier === 'Shared' ? 'Shared' : 'Agent', recorded: async () => [] };
}
