import { capabilityDescriptor } from '../discovery/capability-descriptor.ts';
import type { ToolDescriptor } from '../tools/contract.ts';
import {
  assessCapability,
  type CapabilityContext,
  type ConnectionTarget,
  type Unavailable,
  type UsableCapability,
} from './assess.ts';
import type { BrokeredCapability } from './capability-object.ts';

/** A Capability, and whether its tool can be called as far as the facts of the cluster say. */
export type AssessedCapability<
  B extends BrokeredCapability = BrokeredCapability,
  C extends ConnectionTarget = ConnectionTarget,
> = { readonly capability: B } & (
  | { readonly usable: UsableCapability<C>; readonly unavailable?: undefined }
  | { readonly usable?: undefined; readonly unavailable: Unavailable }
);

/** What the Capabilities of a namespace are assessed with. */
export interface NamespaceContext<B extends BrokeredCapability, C extends ConnectionTarget>
  extends Pick<CapabilityContext<C>, 'connections' | 'mcpServers' | 'hasEgress'> {
  /** Names that no Capability may take. */
  readonly reserved: ReadonlySet<string>;
  /** A tool that the namespace has besides those of Capabilities: built in, of a service of the platform, or Shared. */
  hasOtherTool(name: string): boolean;
  /** Why a schema of the tool cannot be used. */
  schemaProblem(capability: B): string | undefined;
  /** Characters of the definition in the assignment of each agent. */
  characters(capability: B): number;
}

/** Tools of one namespace, and their definitions in the assignment of each agent. */
const MAX_TOOLS = 128;
const MAX_CHARACTERS = 1_048_576;

/**
 * Assesses the Capabilities of one namespace with a backend, the oldest first: it keeps a name that two of them use, so that no new one takes
 * the calls of another tool. Pure, so that the operator says in the status what the gateways do.
 */
export function assessNamespace<B extends BrokeredCapability, C extends ConnectionTarget>(
  capabilities: Iterable<B>,
  context: NamespaceContext<B, C>,
): AssessedCapability<B, C>[] {
  const all = [...capabilities].sort(olderFirst);
  const { connections, mcpServers, hasEgress, reserved } = context;
  const hasTool = toolsOf(all, context);
  const taken = new Set(reserved);
  let [tools, characters] = [0, 0];
  return all.map((capability): AssessedCapability<B, C> => {
    if (tools >= MAX_TOOLS) return { capability, unavailable: LIMIT_REACHED };
    const schemaProblem = (): string | undefined => context.schemaProblem(capability);
    const usable = assessCapability(capability, { connections, mcpServers, hasEgress, taken, schemaProblem, hasTool });
    if ('reason' in usable) return { capability, unavailable: usable };
    characters += context.characters(capability);
    if (characters > MAX_CHARACTERS) return { capability, unavailable: LIMIT_REACHED };
    taken.add(capability.tool.name);
    tools += 1;
    return { capability, usable };
  });
}

/** Whether the namespace has a tool that `requiredTools` may name. */
export function toolsOf(
  capabilities: readonly BrokeredCapability[],
  { hasOtherTool }: Pick<NamespaceContext<BrokeredCapability, ConnectionTarget>, 'hasOtherTool'>,
): (name: string) => boolean {
  const names = new Set(capabilities.map(({ tool }) => tool.name));
  return (name) => names.has(name) || hasOtherTool(name);
}

/** The tool as models and policies read it, without its host. */
export function brokeredDescriptor({ spec, tool, backend }: Omit<BrokeredCapability, 'uid'>): ToolDescriptor {
  return capabilityDescriptor(spec, tool, backend.mcp === undefined ? 'Web' : 'Mcp');
}

const LIMIT_REACHED: Unavailable = {
  reason: 'LimitReached',
  message: `the tools of older Capabilities of the namespace reach the limit of ${MAX_TOOLS} tools or ${MAX_CHARACTERS} characters; delete some`,
};

function olderFirst(a: BrokeredCapability, b: BrokeredCapability): number {
  if (a.createdAt !== b.createdAt) return a.createdAt < b.createdAt ? -1 : 1;
  return a.name < b.name ? -1 : 1;
}
