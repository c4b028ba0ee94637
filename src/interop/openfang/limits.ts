import type { FieldPath } from '../../api/findings.ts';
import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import type { JsonObject } from '../../lib/json.ts';
import { DEFAULT_PRIORITY, PRIORITIES, type AgentPriority } from '../../api/limits/priority.ts';
import { automaticActions } from '../../policy/tables.ts';
import { decimalText, MAX_AMOUNT } from './values/decimals.ts';
import type { ImportContext } from './import-context.ts';
import type { ImportLog } from './keys/import-log.ts';
import { integerAt, isEmptyList, numberAt, textAt, textsAt } from './source/source-values.ts';
import { RENAMED_TOOLS } from './tool-names.ts';

export type ImportedLimits = Pick<AgentSpec, 'quotas' | 'limits' | 'idle' | 'autonomy' | 'priority'>;

type Quotas = NonNullable<AgentSpec['quotas']>;

const NO_LIMIT = '0 means no limit in OpenFang and no use here, so no quota is set';
const MAX_COUNT = 1_000;

/** Each quota with the keys of OpenFang's code and of its documentation. */
const COUNTED: readonly (readonly [keyof Quotas, readonly string[], number])[] = [
  ['tokensPerHour', ['max_llm_tokens_per_hour', 'max_tokens_per_hour'], 1e12],
  ['toolCallsPerMinute', ['max_tool_calls_per_minute'], 1e6],
  ['networkBytesPerHour', ['max_network_bytes_per_hour'], 1e12],
];
const MONEY: readonly (readonly [keyof Quotas, readonly string[]])[] = [
  ['costPerHour', ['max_cost_per_hour_usd', 'max_cost_per_hour']],
  ['costPerDay', ['max_cost_per_day_usd', 'max_cost_per_day']],
  ['costPerMonth', ['max_cost_per_month_usd', 'max_cost_per_month']],
];

/** Quotas and limits. A limit that cannot be read refuses the file. */
export function importLimits(
  source: JsonObject,
  granted: readonly string[],
  context: ImportContext,
  log: ImportLog,
): ImportedLimits {
  const quotas = { ...importCounts(source, log), ...importMoney(source, log) };
  const limits = importMessageLimits(source, log);
  const idle = importIdle(source, log);
  const autonomy = importApprovals(source, granted, context, log);
  const priority = importPriority(source, log);
  return {
    ...(Object.keys(quotas).length === 0 ? {} : { quotas }),
    ...(Object.keys(limits).length === 0 ? {} : { limits }),
    ...(idle === undefined ? {} : { idle }),
    ...(autonomy === undefined ? {} : { autonomy }),
    ...(priority === undefined ? {} : { priority }),
  };
}

/** OpenFang stores the priority and never reads it. The policy of the agent decides whether it may have a high one. */
function importPriority(source: JsonObject, log: ImportLog): AgentPriority | undefined {
  const path = ['priority'];
  const value = textAt(source, path, log);
  if (value === undefined) return undefined;
  const priority = PRIORITIES.find((name) => name.toLowerCase() === value.toLowerCase());
  if (priority === undefined) log.invalid(path, value, PRIORITIES.join(', ').toLowerCase());
  else
    log.imported(
      path,
      value,
      'spec.priority',
      PRIORITIES.indexOf(priority) > PRIORITIES.indexOf(DEFAULT_PRIORITY)
        ? `needs spec.maxPriority: ${priority} in the TrustPolicy`
        : undefined,
    );
  return priority;
}

function importCounts(source: JsonObject, log: ImportLog): Quotas {
  const quotas: Record<string, number | string> = {};
  for (const [field, keys, maximum] of COUNTED) {
    for (const path of keys.map((key) => ['resources', key])) {
      const value = integerAt(source, path, log);
      if (value === undefined) continue;
      if (value === 0) log.add(path, 'NotImported', { value, note: NO_LIMIT });
      else if (value > maximum) log.invalid(path, value, `a number from 1 to ${maximum}`);
      else {
        const lower = Math.min(value, Number(quotas[field] ?? value));
        quotas[field] = field === 'networkBytesPerHour' ? String(lower) : lower;
        log.imported(path, value, `spec.quotas.${field}`);
      }
    }
  }
  return quotas as Quotas;
}

function importMoney(source: JsonObject, log: ImportLog): Quotas {
  const quotas: Record<string, string> = {};
  for (const [field, keys] of MONEY) {
    for (const path of keys.map((key) => ['resources', key])) {
      const value = numberAt(source, path, log);
      if (value === undefined) continue;
      if (value === 0) log.add(path, 'NotImported', { value, note: NO_LIMIT });
      else if (value > MAX_AMOUNT) log.invalid(path, value, `an amount up to ${MAX_AMOUNT}`);
      else {
        quotas[field] = decimalText(Math.min(value, Number(quotas[field] ?? value)));
        log.imported(path, value, `spec.quotas.${field}`);
      }
    }
  }
  return quotas as Quotas;
}

const MESSAGE_LIMITS: readonly (readonly ['turns' | 'steps', FieldPath])[] = [
  ['turns', ['autonomous', 'max_iterations']],
  ['turns', ['resources', 'max_iterations']],
  ['steps', ['autonomous', 'max_actions_per_cycle']],
];

function importMessageLimits(source: JsonObject, log: ImportLog): NonNullable<AgentSpec['limits']> {
  const limits: NonNullable<AgentSpec['limits']> = {};
  for (const [field, path] of MESSAGE_LIMITS) {
    const value = integerAt(source, path, log);
    if (value === undefined) continue;
    if (value === 0) {
      log.invalid(path, value, `a number from 1 to ${MAX_COUNT}`);
      continue;
    }
    limits[field] = Math.min(value, MAX_COUNT, limits[field] ?? MAX_COUNT);
    const note = field === 'turns' ? 'model calls per message' : 'tool calls per message';
    const above = value > MAX_COUNT ? `; at most ${MAX_COUNT}` : '';
    log.add(path, above === '' ? 'Imported' : 'Changed', { value, field: `spec.limits.${field}`, note: note + above });
  }
  return limits;
}

function importIdle(source: JsonObject, log: ImportLog): AgentSpec['idle'] {
  const path = ['autonomous', 'idle_timeout_seconds'];
  const seconds = integerAt(source, path, log);
  if (seconds === undefined) return undefined;
  if (seconds === 0) {
    log.add(path, 'NotImported', { value: seconds, note: 'without a timeout the pod keeps running' });
    return undefined;
  }
  if (seconds > MAX_AMOUNT) {
    log.invalid(path, seconds, `a number up to ${MAX_AMOUNT}`);
    return undefined;
  }
  const note = 'the pod is deleted after this time without messages; the next message starts it again';
  log.add(path, 'Changed', { value: seconds, field: 'spec.idle.scaleToZeroAfter', note });
  return { scaleToZeroAfter: `${seconds}s` };
}

/** Approvals are by action here: the loosest preset under which every listed tool that the agent has waits for an approver. */
function importApprovals(
  source: JsonObject,
  granted: readonly string[],
  { tools, patterns }: ImportContext,
  log: ImportLog,
): AgentSpec['autonomy'] {
  const path = ['autonomous', 'approval_required_for'];
  const listed = textsAt(source, path, log);
  if (isEmptyList(source, path)) log.imported(path, [], 'spec.autonomy', 'the agent needs no other approvals');
  const actions = new Set<string>();
  const here = listed.filter(({ path: at, text }) => {
    const local = RENAMED_TOOLS.get(text) ?? text;
    const matching = tools.filter(
      ({ name }) => patterns.covers(granted, name, 'tool') && isListed(local, name, patterns),
    );
    for (const { action } of matching) actions.add(action);
    if (matching.length === 0)
      log.add(at, 'NotImported', { value: text, note: 'the agent has no such tool, so nothing waits' });
    return matching.length > 0;
  });
  if (here.length === 0) return undefined;
  const automatic = automaticActions('Supervised');
  const autonomy = [...actions].some((action) => automatic?.has(action) !== false) ? 'Locked' : 'Supervised';
  const note = `${autonomy} is stricter than the list: ${autonomy === 'Locked' ? 'every action' : 'every action but reading'} needs an approval`;
  for (const { path: at, text } of here) log.add(at, 'Changed', { value: text, field: 'spec.autonomy', note });
  return autonomy;
}

function isListed(pattern: string, name: string, patterns: ImportContext['patterns']): boolean {
  return patterns.patternError(pattern, 'tool') === undefined && patterns.covers([pattern], name, 'tool');
}
