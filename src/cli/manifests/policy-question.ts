import {
  ACTION_TYPES,
  DEFAULT_ACTION,
  FORGE_MODES,
  isCustomAction,
  TOOL_APIS,
  TOOL_CATEGORIES,
} from '../../api/v1alpha1/actions.ts';
import { messageOf, TemperError } from '../../lib/errors.ts';
import { suggestName } from '../../lib/suggest.ts';
import { printable } from '../../lib/printable.ts';
import { type Json, parseUntrustedJson } from '../../lib/json.ts';
import { splitPort } from '../../policy/patterns/hosts.ts';
import type { PolicyRequest } from '../../policy/types.ts';
import { plannedRuns } from '../../schedule/agent-schedule.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';

/** A question to the policy, as options of the command line. */
export interface PolicyQuestion {
  /** The subject: exactly one of the members up to `promote`. */
  tool?: string;
  /** `host` or `host:port`; the default port is 443. */
  host?: string;
  file?: string;
  memory?: string;
  message?: string;
  /** Name of a template, or `own` for a child whose manifest the agent writes. */
  spawn?: string;
  /** A child agent of another agent. */
  kill?: string;
  /** The times of a schedule that the agent makes: a cron expression, or `every 10m`. */
  schedule?: string;
  /** The subject of an event. */
  publish?: string;
  /** A pattern for subjects of events. */
  subscribe?: string;
  model?: string;
  /** Mode of the tool to be forged. */
  forge?: string;
  promote?: string;
  /** JSON text: the arguments of `tool`; without them the question is whether it may be listed. */
  input?: string;
  /** For a tool that is not built in. */
  category?: string;
  action?: string;
  /** For `file` and `memory`: write instead of read. */
  write?: boolean;
  /** Requirements of the tool for `forge`. */
  api?: string[];
  domain?: string[];
  path?: string[];
  /** For `promote`: Agent or Shared. */
  tier?: string;
}

const SUBJECT_OPTIONS = [
  'tool',
  'host',
  'file',
  'memory',
  'message',
  'spawn',
  'kill',
  'schedule',
  'publish',
  'subscribe',
  'model',
  'forge',
  'promote',
] as const;

const OWN_MANIFEST = 'own';

/** Converts the options to a request. Throws TEMPER_USAGE for no subject, several subjects, or an invalid value. */
export function toPolicyRequest(options: PolicyQuestion, tools: readonly ToolDescriptor[]): PolicyRequest {
  const chosen = SUBJECT_OPTIONS.filter((name) => options[name] !== undefined);
  const [question] = chosen;
  if (question === undefined || chosen.length > 1) {
    throw usageError(`ask about exactly one of ${SUBJECT_OPTIONS.map((name) => `--${name}`).join(', ')}`);
  }
  return requestAbout(question, options[question] ?? '', options, tools);
}

/** The questions that have only a subject. */
const PLAIN_REQUESTS = {
  message: (agent) => ({ kind: 'Message', agent }),
  kill: (agent) => ({ kind: 'Kill', agent }),
  publish: (subject) => ({ kind: 'Publish', subject }),
  subscribe: (pattern) => ({ kind: 'Subscribe', pattern }),
  model: (model) => ({ kind: 'Model', model }),
} as const satisfies Partial<Record<(typeof SUBJECT_OPTIONS)[number], (subject: string) => PolicyRequest>>;

function requestAbout(
  question: (typeof SUBJECT_OPTIONS)[number],
  subject: string,
  options: PolicyQuestion,
  tools: readonly ToolDescriptor[],
): PolicyRequest {
  switch (question) {
    case 'tool':
      return toolRequest(subject, options, tools);
    case 'host':
      return hostRequest(subject);
    case 'file':
      return { kind: 'File', path: subject, access: accessOf(options) };
    case 'memory':
      return { kind: 'Memory', key: subject, access: accessOf(options) };
    case 'spawn':
      return subject === OWN_MANIFEST ? { kind: 'Spawn' } : { kind: 'Spawn', template: subject };
    case 'schedule':
      return scheduleRequest(subject);
    case 'forge':
      return forgeRequest(subject, options);
    case 'promote':
      return { kind: 'Promote', tool: subject, tier: oneOf('tier', options.tier ?? 'Agent', ['Agent', 'Shared']) };
    default:
      return PLAIN_REQUESTS[question](subject);
  }
}

function accessOf({ write }: PolicyQuestion): 'read' | 'write' {
  return write === true ? 'write' : 'read';
}

function toolRequest(name: string, options: PolicyQuestion, tools: readonly ToolDescriptor[]): PolicyRequest {
  const known = tools.find((tool) => tool.name === name);
  const categoryName = options.category ?? known?.category;
  if (categoryName === undefined) {
    throw usageError(
      `no tool is named "${name}": give its --category, or one of ${tools.map((t) => t.name).join(', ')}`,
    );
  }
  const category = oneOf('category', categoryName, TOOL_CATEGORIES);
  return {
    kind: 'Tool',
    name,
    category,
    action: actionOf(options.action) ?? known?.action ?? DEFAULT_ACTION[category],
    forged: known?.forged !== undefined,
    ...(options.input === undefined ? {} : { arguments: parseInput(options.input) }),
  };
}

/** An unregistered action would be answered with "high risk", so a typo would look like a decision. */
function actionOf(action: string | undefined): string | undefined {
  if (action === undefined || ACTION_TYPES.includes(action) || isCustomAction(action)) return action;
  const near = suggestName(action, ACTION_TYPES);
  const hint = near === undefined ? `one of ${ACTION_TYPES.join(', ')}` : `did you mean ${near}?`;
  throw usageError(`--action "${action}" is not an action; ${hint}`);
}

function parseInput(text: string): Json {
  try {
    return parseUntrustedJson(text);
  } catch (error) {
    throw usageError(`--input is not JSON: ${messageOf(error, 200)}`);
  }
}

function hostRequest(text: string): PolicyRequest {
  const split = splitPort(text);
  if (split === undefined) throw usageError(`--host "${text}" is not host:port; write an IPv6 address in brackets`);
  return { kind: 'Network', host: split.host, port: Number(split.port ?? 443) };
}

/** As the first schedule that the agent makes. */
function scheduleRequest(times: string): PolicyRequest {
  try {
    return { kind: 'Schedule', runsPerHour: plannedRuns({ times, timeZone: 'UTC' }, '', Date.now()).runsPerHour };
  } catch (error) {
    throw usageError(`--schedule: ${messageOf(error, 200)}`);
  }
}

function forgeRequest(mode: string, options: PolicyQuestion): PolicyRequest {
  return {
    kind: 'Forge',
    mode: oneOf('forge', mode, FORGE_MODES),
    apis: (options.api ?? []).map((api) => oneOf('api', api, TOOL_APIS)),
    domains: options.domain ?? [],
    paths: options.path ?? [],
  };
}

function oneOf<T extends string>(option: string, text: string, allowed: readonly T[]): T {
  const found = allowed.find((value) => value === text);
  if (found === undefined) throw usageError(`--${option} "${text}" is not one of ${allowed.join(', ')}`);
  return found;
}

export function usageError(message: string): TemperError {
  return new TemperError('TEMPER_USAGE', printable(message, 1_000));
}
