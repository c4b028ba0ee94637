import type { Tier } from '../api/v1alpha1/common.ts';
import { TemperError } from '../lib/errors.ts';
import { objectName, segment } from './object-name.ts';
import type { RegisteredTool, ToolScope } from './types.ts';

/** Whose tool it is. */
export interface ToolOwner {
  agent: string;
  namespace: string;
}

/** How many forged tools may be active at once: in one session, and at tier Agent for one agent. */
export interface ToolLimits {
  sessionTools: number;
  agentTools: number;
}

/** Lookup order. */
export const TIERS: readonly Tier[] = ['Session', 'Agent', 'Shared'];

/** May an agent in this session see the tool? Session ids are compared whole. */
export function isVisible(tool: RegisteredTool, scope: ToolScope): boolean {
  if (tool.owner.namespace !== scope.namespace) return false;
  if (tool.tier === 'Shared') return true;
  if (tool.owner.agent !== scope.agent) return false;
  return tool.tier === 'Agent' || tool.owner.session === scope.session;
}

/** Is there any view in which both could be seen? */
function viewsMeet(a: RegisteredTool, b: RegisteredTool): boolean {
  if (a.owner.namespace !== b.owner.namespace) return false;
  if (a.tier === 'Shared' || b.tier === 'Shared') return true;
  if (a.owner.agent !== b.owner.agent) return false;
  return a.tier === 'Agent' || b.tier === 'Agent' || a.owner.session === b.owner.session;
}

/** Where a tool of that tier and owner is stored. */
export function objectPath(
  tool: string,
  tier: Tier,
  owner: RegisteredTool['owner'],
  digest: RegisteredTool['digest'],
): string {
  const { agent, namespace, session } = owner;
  // A Shared tool has no owner; its namespace stands in, since one folder may hold several.
  const holder = tier === 'Shared' ? `${namespace}/` : `${namespace}/${agent}`;
  const folder = tier === 'Session' ? `sessions/${sessionSegment(session)}/tools` : 'tools';
  return `${folder}/${objectName(tool, tier, holder, digest)}`;
}

export function sessionSegment(session: string): string {
  if (session === '')
    throw new TemperError(
      'TEMPER_FORGE_NO_SESSION',
      'forging needs a session and none was given; send the message in a session',
    );
  return segment(session);
}

/**
 * Throws when `tool` may not become active among `actives`: its name is built in or taken in a view both would be in
 * (TEMPER_FORGE_NAME_TAKEN), or its session or agent is full (TEMPER_FORGE_LIMIT_REACHED). `replaces` are those it takes the place of.
 */
export function assertRoom(
  tool: RegisteredTool,
  actives: readonly RegisteredTool[],
  deps: { builtIn: ReadonlySet<string>; limits: ToolLimits; replaces: readonly RegisteredTool[] },
): void {
  const { name } = tool.artifact;
  if (deps.builtIn.has(name)) {
    throw new TemperError('TEMPER_FORGE_NAME_TAKEN', `"${name}" is a built-in tool; choose another name`);
  }
  const others = actives.filter((other) => !deps.replaces.includes(other));
  const holder = others.find((other) => other.artifact.name === name && viewsMeet(other, tool));
  if (holder !== undefined) {
    const same = holder.digest === tool.digest ? 'it is this very tool, so use it' : 'choose another name';
    throw new TemperError('TEMPER_FORGE_NAME_TAKEN', `"${name}" is already active at tier ${holder.tier}; ${same}`, {
      details: { digest: holder.digest, tier: holder.tier },
    });
  }
  assertLimit(tool, others, deps.limits);
}

function assertLimit(tool: RegisteredTool, others: readonly RegisteredTool[], limits: ToolLimits): void {
  if (tool.tier === 'Shared') return;
  const held = others.filter((other) => other.tier === tool.tier && viewsMeet(other, tool)).length;
  const [limit, field, place] =
    tool.tier === 'Session'
      ? [limits.sessionTools, 'sessionTools', 'this session']
      : [limits.agentTools, 'agentTools', `agent "${tool.owner.agent}"`];
  if (held < limit) return;
  throw new TemperError(
    'TEMPER_FORGE_LIMIT_REACHED',
    `${place} has ${held} of ${limit} forged tools; use those there are, or raise forge.limits.${field}`,
    { details: { limit, held } },
  );
}

/** The widest active tool with this digest that an agent sees in any of its sessions. */
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
