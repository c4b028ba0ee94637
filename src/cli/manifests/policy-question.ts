import { ACTION_TYPES, FORGE_MODES, isCustomAction, TOOL_APIS, TOOL_CATEGORIES } from '../../api/v1alpha1/actions.ts';
import { messageOf, TemperError } from '../../lib/errors.ts';
import { suggestName } from '../../lib/suggest.ts';
import { printable } from '../../lib/printable.ts';
import { type Json, parseUntrustedJson } from '../../lib/json.ts';
import { splitPort } from '../../policy/patterns/hosts.ts';
import type { PolicyRequest } from '../../policy/types.ts';
import { plannedRuns } from '../../schedule/agent-schedule.ts';
import { toolRequest } from '../../tools/authorize.ts';
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
  /** For a tool that is not known. */
  category?: string;
  action?: string;
  /** For `file` and `memory`: write instead of read. */
  write?: boolean;
  /** For `tool`: it is forged, with these requirements, and is looked up nowhere. */
  forged?: boolean;
  /** Requirements of the tool for `forge` and for `forged`. */
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

export type Question = (typeof SUBJECT_OPTIONS)[number];

/** What the options ask about. Throws TEMPER_USAGE for no subject, several subjects, or options that belong to another one. */
export function questionOf(options: PolicyQuestion): Question {
  const chosen = SUBJECT_OPTIONS.filter((name) => options[name] !== undefined);
  const [question] = chosen;
  if (question === undefined || chosen.length > 1) {
    throw usageError(`ask about exactly one of ${SUBJECT_OPTIONS.map((name) => `--${name}`).join(', ')}`);
  }
  if (options.forged === true && question !== 'tool') throw usageError('--forged works with --tool only');
  const requirement = (['api', 'domain', 'path'] as const).find((name) => options[name] !== undefined);
  if (requirement !== undefined && question !== 'forge' && options.forged !== true)
    throw usageError(
      `--${requirement} is a requirement of a forged tool; ask with --forge, or with --tool and --forged`,
    );
  return question;
}

/** Converts the options to a request; `tool` is the one of the question, if it is about one. Throws TEMPER_USAGE for an invalid value. */
export function toPolicyRequest(
  question: Question,
  options: PolicyQuestion,
  tool: ToolDescriptor | undefined,
): PolicyRequest {
  if (tool !== undefined) return toolQuestion(tool, options);
  if (question === 'tool') throw new TypeError('the tool of the question is missing');
  return requestAbout(question, options[question] ?? '', options);
}

/** The questions that have only a subject. */
const PLAIN_REQUESTS = {
  message: (agent) => ({ kind: 'Message', agent }),
  kill: (agent) => ({ kind: 'Kill', agent }),
  publish: (subject) => ({ kind: 'Publish', subject }),
  subscribe: (pattern) => ({ kind: 'Subscribe', pattern }),
  model: (model) => ({ kind: 'Model', model }),
} as const satisfies Partial<Record<(typeof SUBJECT_OPTIONS)[number], (subject: string) => PolicyRequest>>;

function requestAbout(question: Exclude<Question, 'tool'>, subject: string, options: PolicyQuestion): PolicyRequest {
  switch (question) {
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

function toolQuestion(tool: ToolDescriptor, { category, action, input }: PolicyQuestion): PolicyRequest {
  const asked = {
    ...tool,
    ...(category === undefined ? {} : { category: oneOf('category', category, TOOL_CATEGORIES) }),
    ...(action === undefined ? {} : { action: knownAction(action) }),
  };
  return toolRequest(asked, input === undefined ? undefined : parseInput(input));
}

/** An unregistered action would be answered with "high risk", so a typo would look like a decision. */
function knownAction(action: string): string {
  if (ACTION_TYPES.includes(action) || isCustomAction(action)) return action;
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

export function oneOf<T extends string>(option: string, text: string, allowed: readonly T[]): T {
  const found = allowed.find((value) => value === text);
  if (found === undefined) throw usageError(`--${option} "${text}" is not one of ${allowed.join(', ')}`);
  return found;
}

export function usageError(message: string): TemperError {
  return new TemperError('TEMPER_USAGE', printable(message, 1_000));
}
