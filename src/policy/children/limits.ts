import { DEFAULT_CONCURRENCY } from '../../api/limits/concurrency.ts';
import { parseDecimalMicros, parseDuration, parseMillicores, parseQuantityBytes } from '../../api/quantities.ts';
import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import { refusal, type Refusal } from './refusal.ts';

type Measure = string | number | undefined;

/** A value that the child states has to be at most that of the parent. An absent value of the parent is `standard`, or unlimited. */
interface LimitRule {
  field: string;
  of: (spec: AgentSpec) => Measure;
  parse: (text: string) => number;
  standard?: number;
  /** Without a value of the parent, an operator's default applies, which nothing here knows: the child may state none. */
  needsParent?: boolean;
}

const RULES: readonly LimitRule[] = [
  count('spec.model.maxOutputTokens', ({ model }) => model.maxOutputTokens),
  count('spec.limits.turns', ({ limits }) => limits?.turns, 30),
  count('spec.limits.steps', ({ limits }) => limits?.steps, 30),
  count('spec.limits.outputCharacters', ({ limits }) => limits?.outputCharacters, 50_000),
  count('spec.limits.concurrency', ({ limits }) => limits?.concurrency, DEFAULT_CONCURRENCY),
  measure('spec.limits.toolTimeout', ({ limits }) => limits?.toolTimeout, parseDuration, 60_000),
  count('spec.quotas.tokensPerHour', ({ quotas }) => quotas?.tokensPerHour),
  count('spec.quotas.tokensPerDay', ({ quotas }) => quotas?.tokensPerDay),
  count('spec.quotas.toolCallsPerMinute', ({ quotas }) => quotas?.toolCallsPerMinute),
  measure('spec.quotas.costPerHour', ({ quotas }) => quotas?.costPerHour, parseDecimalMicros),
  measure('spec.quotas.costPerDay', ({ quotas }) => quotas?.costPerDay, parseDecimalMicros),
  measure('spec.quotas.costPerMonth', ({ quotas }) => quotas?.costPerMonth, parseDecimalMicros),
  measure('spec.quotas.networkBytesPerHour', ({ quotas }) => quotas?.networkBytesPerHour, parseQuantityBytes),
  ofSandbox('resources.cpu', (sandbox) => sandbox?.resources?.cpu, parseMillicores),
  ofSandbox('resources.memory', (sandbox) => sandbox?.resources?.memory, parseQuantityBytes),
  ofSandbox('workspace.size', (sandbox) => sandbox?.workspace?.size, parseQuantityBytes),
];

function count(field: string, of: LimitRule['of'], standard?: number): LimitRule {
  return measure(field, of, Number, standard);
}

function measure(field: string, of: LimitRule['of'], parse: LimitRule['parse'], standard?: number): LimitRule {
  return { field, of, parse, ...(standard === undefined ? {} : { standard }) };
}

function ofSandbox(key: string, of: (sandbox: AgentSpec['sandbox']) => Measure, parse: LimitRule['parse']): LimitRule {
  return { field: `spec.sandbox.${key}`, of: ({ sandbox }) => of(sandbox), parse, needsParent: true };
}

export function limitRefusals(child: AgentSpec, parent: AgentSpec): Refusal[] {
  return RULES.flatMap((rule): Refusal[] => {
    const asked = rule.of(child);
    if (asked === undefined) return [];
    const has = rule.of(parent);
    const ceiling = has === undefined ? rule.standard : valueOf(rule, has);
    if (ceiling === undefined && rule.needsParent !== true) return [];
    // NaN, of a malformed value, is within no ceiling.
    if (ceiling !== undefined && valueOf(rule, asked) <= ceiling) return [];
    return [refusal(rule.field, String(asked), String(has ?? rule.standard ?? 'no value'))];
  });
}

function valueOf(rule: LimitRule, value: string | number): number {
  try {
    return rule.parse(String(value));
  } catch {
    return Number.NaN;
  }
}
