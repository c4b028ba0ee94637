import type { EmergentTool } from '../../../api/v1alpha1/emergenttool.ts';
import { splitReference } from '../../../forge/request.ts';
import type { KubeReader } from '../../../kube/client/kube-client.ts';
import type { KubeObject } from '../../../kube/informer/store.ts';
import type { Json } from '../../../lib/json.ts';
import {
  type ComparedTool,
  ofExamined,
  type ToolsInService,
} from '../../../tempering/examination/redundancy/compared-tool.ts';
import { type DeclaredTool, outsideInfluences } from '../../../tempering/examination/redundancy/outside-influence.ts';
import { areCompatible, shapesOf } from '../../../tempering/examination/redundancy/schema-shape.ts';
import { bySimilarity } from '../../../tempering/examination/redundancy/similar-tools.ts';
import { artifactDigest } from '../../../tempering/registry/serialization.ts';
import type { RegisteredTool } from '../../../tempering/types.ts';
import type { Cache } from '../../kube/cache.ts';
import { TYPES } from '../../kube/types.ts';
import { isVisibleTo } from '../gaps.ts';
import type { PromotionStore } from '../ports.ts';
import type { StoredTool } from '../../tool/stored-tool.ts';
import { TOOL_INDEX } from '../../tool/tool-index.ts';

export interface ServiceDeps {
  readonly client: Pick<KubeReader, 'get'>;
  readonly tools: Pick<Cache<StoredTool>, 'byIndex'>;
  readonly store: Pick<PromotionStore, 'recordedInputs'>;
}

/** Objects that are read. The operator keeps no artifact, so the shapes of their schemas and their names choose them. */
const MAX_READ = 16;
/** Recorded inputs of one tool: no more are shared. */
const MAX_INPUT_BYTES = 256 * 1_024;

/**
 * The tools of the agent and of its namespace that an examined tool is compared with. The order depends on schemas and names alone, because
 * every round of the examination has to find the same tools. Throws ApiError.
 */
export async function toolsInService(
  deps: ServiceDeps,
  agent: { namespace: string; uid: string },
  { artifact, digest }: RegisteredTool,
  signal: AbortSignal,
): Promise<ToolsInService> {
  const visible = deps.tools
    .byIndex(TOOL_INDEX.namespace, agent.namespace)
    .filter((tool) => isInService(tool, agent.uid))
    .toSorted((first, second) => (first.metadata.name < second.metadata.name ? -1 : 1));
  const others = visible.filter(({ facts }) => facts.digest !== digest && facts.tool !== artifact.name);
  const influenceOn = outsideInfluences(
    new Map(visible.map(({ facts }) => [facts.digest as string, declaredTool(facts)])),
  );
  const steps = artifact.implementation.steps?.map(({ tool }) => splitReference(tool));
  const own = influenceOn({ requires: artifact.requires, steps });
  const judged = others.map((tool) => ({
    tool,
    reason: own === undefined ? influenceOn(declaredTool(tool.facts)) : ofExamined(own),
  }));
  const comparable = judged.flatMap(({ tool, reason }) => (reason === undefined ? [tool] : []));
  const shapes = shapesOf(artifact);
  const compatible = comparable.filter(({ facts }) => areCompatible(shapes, facts.shapes));
  const named = compatible.map((tool) => ({ name: tool.facts.tool, description: '', tool }));
  const read: ComparedTool[] = [];
  for (const { tool } of bySimilarity(artifact, named).slice(0, MAX_READ)) {
    const compared = await readTool(deps, agent, tool, signal);
    if (compared !== undefined) read.push(compared);
  }
  const incomparable = judged.flatMap(({ tool, reason }) =>
    reason === undefined ? [] : [{ name: tool.facts.tool, reason }],
  );
  return { tools: read, incomparable };
}

function isInService({ metadata, facts, status }: StoredTool, agentUid: string): boolean {
  if (status?.active !== true || facts.problem !== undefined) return false;
  return isVisibleTo({ metadata, facts }, agentUid);
}

function declaredTool({ requires, mode, steps }: StoredTool['facts']): DeclaredTool {
  return { requires, steps: mode === 'Compose' ? steps : undefined };
}

/** Undefined for an object that changed meanwhile, and for one without its source. The digest is computed again. */
async function readTool(
  { client, store }: ServiceDeps,
  agent: { uid: string },
  { metadata: { namespace, name }, facts: { digest, tier } }: StoredTool,
  signal: AbortSignal,
): Promise<ComparedTool | undefined> {
  const object = await client.get<KubeObject & Pick<EmergentTool, 'spec'>>(
    TYPES.emergentTools,
    { namespace, name },
    signal,
  );
  const artifact = object?.spec.artifact;
  const { source, steps } = artifact?.implementation ?? {};
  const isRunnable = source !== undefined || steps !== undefined;
  if (artifact === undefined || !isRunnable || artifactDigest(artifact) !== digest) return undefined;
  // Only those of uses by the agent of the examined tool: a pod has inputs of one agent alone.
  const recorded = async (): Promise<Json[]> =>
    (await store.recordedInputs(agent.uid, { digest, namespace }, MAX_INPUT_BYTES)).map(({ input }) => input);
  return { artifact, tier: tier === 'Shared' ? 'Shared' : 'Agent', recorded };
}
