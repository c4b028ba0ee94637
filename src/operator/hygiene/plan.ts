import type { EmergentToolStatus } from '../../api/v1alpha1/emergenttool.ts';
import {
  type DeactivatedTool,
  isDeactivated,
  MAX_DEACTIVATED_TOOLS,
} from '../../api/v1alpha1/trust/deactivated-tools.ts';
import type { ToolsUsedTogether } from '../../api/v1alpha1/trust/tools-used-together.ts';
import { compareText } from '../../discovery/lexical/compare-text.ts';
import type { Digest } from '../../lib/canonical.ts';
import { printable } from '../../lib/printable.ts';
import type { AgentToolEvidence } from '../ports.ts';

/** A tool that the agent has, or had before it was deactivated. */
export interface AgentTool {
  readonly digest: Digest;
  readonly name: string;
  readonly inService: boolean;
  readonly createdAt: string;
  /** The last run of its tests, for the current spec. */
  readonly verification: EmergentToolStatus['verification'];
  /** The tool for which this one was promoted, because the agent had its maximum of tools. */
  readonly replaces: { readonly digest: Digest; readonly message: string } | undefined;
}

export interface ObservedAgentTools {
  readonly now: Date;
  readonly before: readonly DeactivatedTool[];
  /** The pairs in the status. */
  readonly pairsBefore: readonly ToolsUsedTogether[];
  readonly tools: readonly AgentTool[];
  /** Undefined while the records are not read. */
  readonly evidence: AgentToolEvidence | undefined;
}

export interface ToolTransition {
  readonly kind: 'Deactivated' | 'Reactivated' | 'ReactivationRefused';
  readonly entry: DeactivatedTool;
  readonly message: string;
}

export interface ToolPlan {
  readonly entries: readonly DeactivatedTool[];
  /** Undefined while the records are not read. */
  readonly usedTogether: readonly ToolsUsedTogether[] | undefined;
  readonly transitions: readonly ToolTransition[];
}

const MAX_MESSAGE = 1_024;

/** What leaves the service of one agent, and what returns to it. Pure. An entry ends with the last object of its tool. */
export function planAgentTools(observed: ObservedAgentTools): ToolPlan {
  const tools = new Map<string, AgentTool>(observed.tools.map((tool) => [tool.digest, tool]));
  const transitions: ToolTransition[] = [];
  const entries = new Map<string, DeactivatedTool>();
  for (const entry of observed.before) {
    const tool = tools.get(entry.digest);
    if (tool === undefined) continue;
    const next = isDeactivated(entry) ? afterVerification(requested(entry, tool, observed), tool, observed) : { entry };
    entries.set(entry.digest, next.entry);
    if (next.transition !== undefined) transitions.push(next.transition);
  }
  for (const { digest, cause, message } of leaving(observed, entries)) {
    const tool = tools.get(digest);
    const known = entries.get(digest);
    if (tool?.inService !== true || (known !== undefined && isDeactivated(known))) continue;
    if (known === undefined && !makePlace(entries)) break;
    const entry = deactivated(tool, { cause, message, known }, observed.now);
    entries.set(digest, entry);
    transitions.push({ kind: 'Deactivated', entry, message: entry.message });
  }
  return { entries: [...entries.values()], usedTogether: namedPairs(observed, entries), transitions };
}

/** The pairs of tools that the agent has, in the order of their names. */
function namedPairs(
  { evidence, tools, pairsBefore }: ObservedAgentTools,
  entries: ReadonlyMap<string, DeactivatedTool>,
): ToolsUsedTogether[] | undefined {
  if (evidence === undefined) return undefined;
  const isLost = (digest: Digest): boolean => {
    const entry = entries.get(digest);
    return entry !== undefined && isDeactivated(entry);
  };
  const has = tools.filter(({ digest, inService }) => inService && !isLost(digest));
  const names = new Map(has.map(({ digest, name }) => [digest, name]));
  const before = new Map(pairsBefore.map((pair) => [pair.tools.join(' '), pair.percent]));
  const pairs = new Map<string, ToolsUsedTogether>();
  for (const { tools: digests, percent } of evidence.usedTogether) {
    const pair = digests.flatMap((digest) => names.get(digest) ?? []).toSorted();
    const key = pair.join(' ');
    // A tool of tier Agent and a Shared one can have one name.
    if (pair.length !== 2 || pair[0] === pair[1] || pairs.has(key)) continue;
    pairs.set(key, { tools: pair, percent: steadyPercent(percent, before.get(key)) });
  }
  return [...pairs].toSorted(([one], [other]) => compareText(one, other)).map(([, pair]) => pair);
}

/** In tens, and as before until ten percent differ: each change is a write. */
function steadyPercent(percent: number, before: number | undefined): number {
  if (before !== undefined && Math.abs(percent - before) < 10) return before;
  return Math.max(10, Math.round(percent / 10) * 10);
}

type Leaving = Pick<DeactivatedTool, 'cause' | 'message'> & { readonly digest: Digest };

function leaving({ evidence, tools }: ObservedAgentTools, entries: ReadonlyMap<string, DeactivatedTool>): Leaving[] {
  const replaced = tools.flatMap(({ inService, createdAt, replaces }) => {
    if (!inService || replaces === undefined) return [];
    // A tool that was verified again since then made its own way back.
    const returned = entries.get(replaces.digest)?.reactivatedAt;
    if (returned !== undefined && Date.parse(returned) >= Date.parse(createdAt)) return [];
    return [{ ...replaces, cause: 'LeastUseful' } as const];
  });
  return [...(evidence?.findings ?? []), ...replaced];
}

function deactivated(
  { digest, name }: AgentTool,
  { cause, message, known }: Pick<DeactivatedTool, 'cause' | 'message'> & { known: DeactivatedTool | undefined },
  now: Date,
): DeactivatedTool {
  const { reactivatedAt } = known ?? {};
  const entry = { digest, tool: name, cause, message: printable(message, MAX_MESSAGE), since: now.toISOString() };
  return reactivatedAt === undefined ? entry : { ...entry, reactivatedAt };
}

/** An order of a user counts that is younger than the deactivation and than the last run of the tests. */
function requested(entry: DeactivatedTool, tool: AgentTool, { evidence, now }: ObservedAgentTools): DeactivatedTool {
  if (entry.requestedAt !== undefined) return entry;
  const after = Math.max(Date.parse(entry.since), verifiedAt(tool));
  const isOrdered = evidence?.orders.some(({ digest, requestedAt }) => digest === entry.digest && requestedAt > after);
  return isOrdered === true ? { ...entry, requestedAt: now.toISOString() } : entry;
}

function afterVerification(
  entry: DeactivatedTool,
  tool: AgentTool,
  { now }: ObservedAgentTools,
): { entry: DeactivatedTool; transition?: ToolTransition } {
  const { requestedAt, ...rest } = entry;
  const { verification } = tool;
  if (requestedAt === undefined || verification === undefined) return { entry };
  if (verifiedAt(tool) <= Date.parse(requestedAt)) return { entry };
  if (verification.result === 'Passed') {
    const returned = { ...rest, reactivatedAt: now.toISOString() };
    const message = `its tests passed again; earlier tasks do not count`;
    return { entry: returned, transition: { kind: 'Reactivated', entry: returned, message } };
  }
  const message = `${verification.failedTests} of ${verification.tests} tests failed again; forge a corrected version`;
  return { entry: rest, transition: { kind: 'ReactivationRefused', entry: rest, message } };
}

function verifiedAt({ verification }: AgentTool): number {
  return verification === undefined ? 0 : Date.parse(verification.verifiedAt);
}

/** Forgets the tool that returned first. False when all entries are of deactivated tools. */
function makePlace(entries: Map<string, DeactivatedTool>): boolean {
  if (entries.size < MAX_DEACTIVATED_TOOLS) return true;
  const returned = [...entries.values()].filter((entry) => !isDeactivated(entry));
  const [first] = returned.toSorted((one, other) => Date.parse(one.since) - Date.parse(other.since));
  return first !== undefined && entries.delete(first.digest);
}
