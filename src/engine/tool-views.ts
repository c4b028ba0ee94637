import type { Digest } from '../lib/canonical.ts';
import { createForgedTool, type ForgedToolDeps } from '../forge/forged-tool.ts';
import type { RegisteredTool } from '../tempering/types.ts';
import type { CallerContext, Tool, ToolDescriptor, ToolView } from '../tools/contract.ts';
import { createToolView } from '../tools/view.ts';
import type { ToolStore } from './ports.ts';

export interface ToolViewDeps {
  tools: ToolStore;
  builtIn: readonly Tool[];
  forged: Omit<ForgedToolDeps, 'describe'>;
}

/** The tools of one agent by session, made anew after each change of the store. */
export function createToolViews(
  deps: ToolViewDeps,
): (caller: Pick<CallerContext, 'agent' | 'namespace' | 'session'>) => ToolView {
  const views = new Map<string, ToolView>();
  deps.tools.changes(() => views.clear());
  return ({ agent, namespace, session }) => {
    const known = views.get(session);
    if (known !== undefined) return known;
    const view = createToolView(deps.builtIn, forgedTools(deps, deps.tools.resolve(agent, namespace, session)));
    views.set(session, view);
    return view;
  };
}

/**
 * A composed tool is described by what it calls, so those it calls are made first. Pins make circles of calls impossible, but not of
 * names: what a chain was pinned to may be gone and its name another tool's by now.
 */
function forgedTools(deps: ToolViewDeps, registered: readonly RegisteredTool[]): Tool[] {
  const made = new Map<Digest, Tool>();
  const making = new Set<Digest>();
  const describe = (name: string): ToolDescriptor | undefined => {
    const builtIn = deps.builtIn.find((tool) => tool.descriptor.name === name);
    if (builtIn !== undefined) return builtIn.descriptor;
    const forged = registered.find((tool) => tool.artifact.name === name);
    return forged === undefined || making.has(forged.digest) ? undefined : make(forged).descriptor;
  };
  const make = ({ artifact, digest, tier }: RegisteredTool): Tool => {
    const known = made.get(digest);
    if (known !== undefined) return known;
    making.add(digest);
    const tool = createForgedTool(artifact, digest, tier, { ...deps.forged, describe });
    making.delete(digest);
    made.set(digest, tool);
    return tool;
  };
  return registered.map(make);
}
