import type { Digest } from '../lib/canonical.ts';
import { createForgedTool, type ForgedToolDeps } from '../forge/forged-tool.ts';
import { isImported } from '../tempering/registry/visibility.ts';
import type { RegisteredTool } from '../tempering/types.ts';
import type { Tool, ToolDescriptor, ToolView } from '../tools/contract.ts';
import { sessionPath, type SessionScope } from '../tools/session-path.ts';
import { createToolView } from '../tools/view.ts';
import type { SessionToolSource } from './ports.ts';

export interface ToolViewDeps {
  tools: SessionToolSource;
  builtIn: readonly Tool[];
  forged: Omit<ForgedToolDeps, 'describe'>;
}

/** Tool views of one agent by session, rebuilt after each change of the store. */
export function createToolViews(deps: ToolViewDeps): (caller: SessionScope) => ToolView {
  const views = new Map<string, ToolView>();
  deps.tools.onChange(() => views.clear());
  return ({ agent, namespace, session }) => {
    const key = sessionPath({ agent, namespace, session });
    const cached = views.get(key);
    if (cached !== undefined) return cached;
    const view = createToolView(
      deps.builtIn,
      forgedTools(deps, unshadowed(deps, deps.tools.resolve(agent, namespace, session))),
    );
    views.set(key, view);
    return view;
  };
}

/**
 * Creates the tools that a composed tool calls first, because its descriptor depends on theirs. Pinned digests exclude cyclic calls,
 * but not cyclic names: a pinned tool may be removed and its name may now belong to another tool.
 */
function forgedTools(deps: ToolViewDeps, registered: readonly RegisteredTool[]): Tool[] {
  const created = new Map<Digest, Tool>();
  const inProgress = new Set<Digest>();
  const describe = (name: string): ToolDescriptor | undefined => {
    const builtIn = deps.builtIn.find((tool) => tool.descriptor.name === name);
    if (builtIn !== undefined) return builtIn.descriptor;
    const forged = registered.find((tool) => tool.artifact.name === name);
    return forged === undefined || inProgress.has(forged.digest) ? undefined : createTool(forged).descriptor;
  };
  const createTool = (registeredTool: RegisteredTool): Tool => {
    const { artifact, digest, tier } = registeredTool;
    const cached = created.get(digest);
    if (cached !== undefined) return cached;
    inProgress.add(digest);
    const forged = createForgedTool(artifact, digest, tier, { ...deps.forged, describe });
    const tool = asRegistered(forged, registeredTool);
    inProgress.delete(digest);
    created.set(digest, tool);
    return tool;
  };
  return registered.map(createTool);
}

/** A forged tool that has the name of a tool from outside, which a user added later, is not in the view. */
function unshadowed({ builtIn }: ToolViewDeps, registered: RegisteredTool[]): RegisteredTool[] {
  const taken = new Set(builtIn.map(({ descriptor }) => descriptor.name));
  return registered.filter(({ artifact }) => !taken.has(artifact.name));
}

/** The tool with what its registry knows of it. */
function asRegistered(tool: Tool, registered: RegisteredTool): Tool {
  const { descriptor } = tool;
  const { forged } = descriptor;
  if (forged === undefined) return tool;
  const { acceptedAt } = registered;
  const known = { ...forged, acceptedAt, ...(isImported(registered) ? { imported: true } : {}) };
  return { descriptor: { ...descriptor, forged: known }, call: (input, context) => tool.call(input, context) };
}
