import type { Tier } from '../../api/v1alpha1/common.ts';
import { TemperError } from '../../lib/errors.ts';
import { sessionPath } from '../../tools/session-path.ts';
import { objectName } from './object-name.ts';
import type { RegisteredTool, ToolScope } from '../types.ts';

/** The agent that owns a tool. */
export interface ToolOwner {
  agent: string;
  namespace: string;
}

/** Maximum number of active forged tools: per session, and at tier Agent per agent. */
export interface ToolLimits {
  sessionTools: number;
  agentTools: number;
  /** Digest of the policy that sets them, for the record. */
  policyRevision?: string;
}

/**
 * The session that owns the imported tools of an agent: at tier Session, and visible in every session of the agent. No user can open a
 * session with this id.
 */
export const IMPORTS_SESSION = '@imports';

/** Lookup order. */
export const TIERS: readonly Tier[] = ['Session', 'Agent', 'Shared'];

/** Whether an agent in this session sees the tool. Session ids are compared in full. */
export function isVisible(tool: RegisteredTool, scope: ToolScope): boolean {
  if (tool.owner.namespace !== scope.namespace) return false;
  if (tool.tier === 'Shared') return true;
  if (tool.owner.agent !== scope.agent) return false;
  return tool.tier === 'Agent' || isImported(tool) || tool.owner.session === scope.session;
}

export function isImported({ tier, owner }: RegisteredTool): boolean {
  return tier === 'Session' && owner.session === IMPORTS_SESSION;
}

/** Whether both tools can be visible in the same session. */
function shareView(a: RegisteredTool, b: RegisteredTool): boolean {
  if (a.owner.namespace !== b.owner.namespace) return false;
  if (a.tier === 'Shared' || b.tier === 'Shared') return true;
  if (a.owner.agent !== b.owner.agent) return false;
  return [a, b].some((tool) => tool.tier === 'Agent' || isImported(tool)) || a.owner.session === b.owner.session;
}

/** The path `<collection>/<name>` of the stored object of a tool. */
export function objectPath(
  tool: string,
  tier: Tier,
  owner: RegisteredTool['owner'],
  digest: RegisteredTool['digest'],
): string {
  const { agent, namespace } = owner;
  // A Shared tool has no owner; the namespace takes its place, since one folder may contain several namespaces.
  const holder = tier === 'Shared' ? `${namespace}/` : `${namespace}/${agent}`;
  const folder = tier === 'Session' ? sessionCollections(owner).tools : 'tools';
  return `${folder}/${objectName(tool, tier, holder, digest)}`;
}

/** The collections of the tools of a session and of their evidence. */
export function sessionCollections(scope: ToolScope): { tools: string; evidence: string } {
  if (scope.session === '')
    throw new TemperError('TEMPER_FORGE_NO_SESSION', 'forging needs a session; send the message in a session');
  const path = sessionPath(scope);
  return { tools: `${path}/tools`, evidence: `${path}/evidence` };
}

/**
 * Throws when `tool` must not become active beside `actives`: its name is that of a built-in tool or of another tool in a common
 * view (TEMPER_FORGE_NAME_TAKEN), or its session or agent has no capacity left (TEMPER_FORGE_LIMIT_REACHED). `replaces` lists the
 * active tools that it supersedes.
 */
export function assertCanActivate(
  tool: RegisteredTool,
  actives: readonly RegisteredTool[],
  deps: { builtIn: ReadonlySet<string>; limits: ToolLimits; replaces: readonly RegisteredTool[] },
): void {
  const { name } = tool.artifact;
  if (deps.builtIn.has(name)) {
    throw new TemperError('TEMPER_FORGE_NAME_TAKEN', `"${name}" is a built-in tool; choose another name`);
  }
  const others = actives.filter((other) => !deps.replaces.includes(other));
  const holder = others.find((other) => other.artifact.name === name && shareView(other, tool));
  if (holder !== undefined) {
    const same = holder.digest === tool.digest ? 'it is the same tool, so use it' : 'choose another name';
    throw new TemperError('TEMPER_FORGE_NAME_TAKEN', `"${name}" is already active at tier ${holder.tier}; ${same}`, {
      details: { digest: holder.digest, tier: holder.tier },
    });
  }
  assertLimit(tool, others, deps.limits);
}

/** Whether this session of this agent forged the tool, which is not promoted. */
export function isSessionToolOf({ tier, owner }: RegisteredTool, { agent, namespace, session }: ToolScope): boolean {
  return tier === 'Session' && owner.session === session && owner.agent === agent && owner.namespace === namespace;
}

/** The tool of the same session that a forge replaces: it has the same name and other content. */
export function isReplacedBy(other: RegisteredTool, tool: RegisteredTool): boolean {
  const isSessionTool = tool.tier === 'Session' && isSessionToolOf(other, tool.owner);
  return isSessionTool && other.artifact.name === tool.artifact.name && other.digest !== tool.digest;
}

function assertLimit(tool: RegisteredTool, others: readonly RegisteredTool[], limits: ToolLimits): void {
  if (tool.tier === 'Shared') return;
  const countsTogether = (other: RegisteredTool): boolean =>
    other.tier === tool.tier && shareView(other, tool) && isImported(other) === isImported(tool);
  const used = others.filter(countsTogether).length;
  const [limit, field, scopeName] =
    tool.tier === 'Session' && !isImported(tool)
      ? [limits.sessionTools, 'sessionTools', 'this session']
      : [limits.agentTools, 'agentTools', `agent "${tool.owner.agent}"`];
  if (used < limit) return;
  throw new TemperError(
    'TEMPER_FORGE_LIMIT_REACHED',
    `${scopeName} has ${used} of ${limit} forged tools; use the existing ones, or raise forge.limits.${field}`,
    { details: { limit, held: used } },
  );
}

/** The active tool of the widest tier with this digest that the agent sees in any of its sessions. */
export function widestActive(
  registry: { all(): RegisteredTool[] },
  { digest, agent, namespace }: ToolOwner & { digest: RegisteredTool['digest'] },
): RegisteredTool | undefined {
  return registry
    .all()
    .filter((tool) => tool.active && tool.digest === digest && tool.owner.namespace === namespace)
    .filter((tool) => tool.tier === 'Shared' || tool.owner.agent === agent)
    .sort((a, b) => TIERS.indexOf(b.tier) - TIERS.indexOf(a.tier))[0];
}

/** The number of agents of the namespace that have this digest at tier Agent. */
export function holdersOf(
  tools: readonly RegisteredTool[],
  { digest, namespace }: Pick<ToolOwner, 'namespace'> & { digest: RegisteredTool['digest'] },
): number {
  const holding = tools.filter((tool) => tool.active && tool.tier === 'Agent' && tool.digest === digest);
  return new Set(holding.filter(({ owner }) => owner.namespace === namespace).map(({ owner }) => owner.agent)).size;
}
