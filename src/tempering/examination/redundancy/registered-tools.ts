import type { ToolArtifact } from '../../../api/v1alpha1/emergenttool.ts';
import { splitReference } from '../../../forge/request.ts';
import type { Registry } from '../../registry/registry.ts';
import type { ToolOwner } from '../../registry/visibility.ts';
import type { RegisteredTool } from '../../types.ts';
import { type ComparedTool, ofExamined, type ToolsInService } from './compared-tool.ts';
import { type DeclaredTool, outsideInfluences } from './outside-influence.ts';

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
  const byDigest = new Map(active.map((tool) => [tool.digest as string, declaredTool(tool.artifact)]));
  const influenceOn = outsideInfluences(byDigest);
  const own = influenceOn(declaredTool(artifact));
  const judged = others.map((other) => ({
    other,
    reason: own === undefined ? influenceOn(declaredTool(other.artifact)) : ofExamined(own),
  }));
  return {
    tools: judged.flatMap(({ other, reason }) => (reason === undefined ? [comparedTool(registry, other)] : [])),
    incomparable: judged.flatMap(({ other, reason }) =>
      reason === undefined ? [] : [{ name: other.artifact.name, reason }],
    ),
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

function declaredTool({ requires, implementation: { steps } }: ToolArtifact): DeclaredTool {
  return { requires, steps: steps?.map(({ tool }) => splitReference(tool)) };
}
