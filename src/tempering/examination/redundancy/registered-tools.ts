import type { ToolArtifact } from '../../../api/v1alpha1/emergenttool.ts';
import { isPure } from '../../../forge/compose/purity.ts';
import { splitReference } from '../../../forge/request.ts';
import type { Registry } from '../../registry/registry.ts';
import type { ToolOwner } from '../../registry/visibility.ts';
import type { RegisteredTool } from '../../types.ts';
import type { ComparedTool, ToolsInService } from './compared-tool.ts';

type ReadableRegistry = Pick<Registry, 'all' | 'recordedInputs'>;

/** The tools of a registry that an examined tool is compared with. None when its own output depends on more than its input. */
export function registeredTools(
  registry: ReadableRegistry,
  { artifact, digest }: Pick<RegisteredTool, 'artifact' | 'digest'>,
  owner: ToolOwner,
): ToolsInService {
  const active = registry.all().filter((tool) => tool.active);
  const others = active.filter(
    (other) => isInService(other, owner) && other.digest !== digest && other.artifact.name !== artifact.name,
  );
  const dependsOnInputAlone = purityAmong(active);
  const comparable = dependsOnInputAlone(artifact) ? others.filter((other) => dependsOnInputAlone(other.artifact)) : [];
  return {
    tools: comparable.map((other) => comparedTool(registry, other)),
    incomparable: others.length - comparable.length,
  };
}

function isInService({ tier, owner }: RegisteredTool, { agent, namespace }: ToolOwner): boolean {
  if (owner.namespace !== namespace) return false;
  return tier === 'Shared' || (tier === 'Agent' && owner.agent === agent);
}

function comparedTool(registry: ReadableRegistry, { artifact, digest, tier, owner }: RegisteredTool): ComparedTool {
  return {
    artifact,
    tier: tier === 'Shared' ? 'Shared' : 'Agent',
    recorded: async () => (await registry.recordedInputs(digest, owner.namespace)).map(({ input }) => input),
  };
}

/** Whether the output of an artifact depends on its input alone, also through its steps. Looks at each called tool once. */
function purityAmong(active: readonly RegisteredTool[]): (artifact: ToolArtifact) => boolean {
  const byDigest = new Map<string, ToolArtifact>(active.map(({ digest, artifact }) => [digest, artifact]));
  const known = new Map<string, boolean>();
  const isPureStep = (step: string): boolean => {
    const { digest = '' } = splitReference(step);
    const called = byDigest.get(digest);
    const isPureTool = known.get(digest) ?? (called !== undefined && isPure(called, isPureStep));
    known.set(digest, isPureTool);
    return isPureTool;
  };
  return (artifact) => isPure(artifact, isPureStep);
}
