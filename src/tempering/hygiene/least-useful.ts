import { splitReference } from '../../forge/request.ts';
import type { ToolOwner } from '../registry/visibility.ts';
import type { RegisteredTool, ToolStatistics } from '../types.ts';

export interface ToolWithUses {
  readonly tool: RegisteredTool;
  readonly uses: ToolStatistics;
}

/** The tools of tier Agent that an agent can lose for a new one: no other active tool calls them in its steps. Imported tools do not count. */
export function replaceableTools(all: readonly RegisteredTool[], { agent, namespace }: ToolOwner): RegisteredTool[] {
  const actives = all.filter(({ active, owner }) => active && owner.namespace === namespace);
  const pinned = new Set<string | undefined>(
    actives
      .flatMap(({ artifact }) => artifact.implementation.steps ?? [])
      .map(({ tool }) => splitReference(tool).digest),
  );
  return actives.filter(({ tier, owner, digest }) => tier === 'Agent' && owner.agent === agent && !pinned.has(digest));
}

/** How much agents used a tool. */
type Uses = Pick<ToolStatistics, 'rootMessages' | 'lastUsedAt'>;

/** The tool with which the fewest messages were handled; of several the one that was not used for the longest time. */
export function leastUseful<T extends { readonly tool: { readonly object: string }; readonly uses: Uses }>(
  tools: readonly T[],
): T | undefined {
  return tools.toSorted(
    (a, b) =>
      a.uses.rootMessages - b.uses.rootMessages ||
      compareText(a.uses.lastUsedAt ?? '', b.uses.lastUsedAt ?? '') ||
      compareText(a.tool.object, b.tool.object),
  )[0];
}

function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/** Why a tool left. */
export function describeLeaving({ uses }: { readonly uses: Uses }): string {
  return `its agent had its maximum of tools, and the fewest messages used it (${uses.rootMessages})`;
}

/** What a promotion does, before it does it. */
export function leavingNote({ tool, uses }: ToolWithUses): string {
  return `the agent has its maximum of tools: "${tool.artifact.name}", which the fewest messages used (${uses.rootMessages}), is deactivated for it`;
}
