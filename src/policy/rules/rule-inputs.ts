import { argumentTexts } from '../detect/texts.ts';
import type { ArgumentText } from '../detect/texts.ts';
import type { RequestOf } from './rule.ts';
import { parseSubject } from '../patterns/pattern-subjects.ts';
import type { Subject } from '../patterns/pattern-subjects.ts';

/** Requests with values that several rules need, computed once per decision. */

export interface ToolRuleInput extends Readonly<RequestOf<'Tool'>> {
  subject: Subject | undefined;
  /** Every string in the arguments. */
  texts: readonly ArgumentText[];
}

export function toToolInput(request: RequestOf<'Tool'>): ToolRuleInput {
  const input = request.arguments;
  return {
    kind: 'Tool',
    name: request.name,
    category: request.category,
    action: request.action,
    forged: request.forged,
    ...(input === undefined ? undefined : { arguments: input }),
    subject: parseSubject('tool', request.name),
    texts: input === undefined ? [] : argumentTexts(input),
  };
}

/** The tools that change the tools of a session: one forges, one drops. They are granted by `spec.forge`, not by name. */
const FORGE_TOOLS: ReadonlySet<string> = new Set(['forge_tool', 'drop_tool']);

export function isForgeTool({ name, forged }: ToolRuleInput): boolean {
  return FORGE_TOOLS.has(name) && !forged;
}

/** The tools for tool discovery. They only show tools that the agent may list, so they need no grant, no level and no approver. */
const DISCOVERY_TOOLS: ReadonlySet<string> = new Set([
  'discover_capabilities',
  'list_tools',
  'load_tool',
  'load_tool_resource',
]);

export function isDiscoveryTool({ name, forged }: ToolRuleInput): boolean {
  return DISCOVERY_TOOLS.has(name) && !forged;
}

export interface NetworkRuleInput extends Readonly<RequestOf<'Network'>> {
  /** `host:port` */
  target: string;
  subject: Subject | undefined;
}

export function toNetworkInput({ kind, host, port }: RequestOf<'Network'>): NetworkRuleInput {
  const target = host.includes(':') && !host.startsWith('[') ? `[${host}]:${port}` : `${host}:${port}`;
  return { kind, host, port, target, subject: parseSubject('host', target) };
}
