import { type ActionRegistry, actionsOfTool, type ToolActions } from '../actions/registry.ts';
import { argumentTexts } from '../detect/texts.ts';
import type { ArgumentText } from '../detect/texts.ts';
import type { RequestOf } from './rule.ts';
import { parseSubject } from '../patterns/pattern-subjects.ts';
import type { Subject } from '../patterns/pattern-subjects.ts';

/** Requests with values that several rules need, computed once per decision. */

export interface ToolRuleInput extends Readonly<RequestOf<'Tool'>> {
  subject: Subject | undefined;
  does: ToolActions;
  /** Every string in the arguments. */
  texts: readonly ArgumentText[];
}

export function toToolInput(request: RequestOf<'Tool'>, registry: ActionRegistry): ToolRuleInput {
  const input = request.arguments;
  const subject = parseSubject('tool', request.name);
  return {
    kind: 'Tool',
    name: request.name,
    category: request.category,
    action: request.action,
    forged: request.forged,
    ...(input === undefined ? undefined : { arguments: input }),
    ...(request.hosts === undefined ? undefined : { hosts: request.hosts }),
    subject,
    does: actionsOfTool(registry, request.action, subject),
    texts: input === undefined ? [] : argumentTexts(input),
  };
}

/** The tools that change the tools of a session: one forges, one drops. They are granted by `spec.forge`, not by name. */
const FORGE_TOOLS: ReadonlySet<string> = new Set(['forge_tool', 'drop_tool']);

export function isForgeTool({ name, forged }: ToolRuleInput): boolean {
  return FORGE_TOOLS.has(name) && !forged;
}

/** Its code has no host function, so what the arguments spell is data. */
export function isIsolatedCode({ name, forged }: ToolRuleInput): boolean {
  return name === 'code_run' && !forged;
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

/** A host and a port as patterns name them. */
export function hostTarget(host: string, port: number): string {
  return host.includes(':') && !host.startsWith('[') ? `[${host}]:${port}` : `${host}:${port}`;
}

export function toNetworkInput({ kind, host, port }: RequestOf<'Network'>): NetworkRuleInput {
  const target = hostTarget(host, port);
  return { kind, host, port, target, subject: parseSubject('host', target) };
}
