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

/** A composed tool is described by what it calls, so those it calls are made first; pins make circles impossible. */
function forgedTools(deps: ToolViewDeps, registered: readonly RegisteredTool[]): Tool[] {
  const made = new Map<Digest, Tool>();
  const describe = (name: string): ToolDescriptor | undefined => {
    const builtIn = deps.builtIn.find((tool) => tool.descriptor.name === name);
    if (builtIn !== undefined) return builtIn.descriptor;
    const forged = registered.find((tool) => tool.artifact.name === name);
    return forged === undefined ? undefined : make(forged).descriptor;
  };
  const make = ({ artifact, digest, tier }: RegisteredTool): Tool => {
    const known = made.get(digest);
    if (known !== undefined) return known;
    const tool = createForgedTool(artifact, digest, tier, { ...deps.forged, describe });
    made.set(digest, tool);
    return tool;
  };
  return registered.map(make);
}
