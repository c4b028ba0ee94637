import { DEFAULT_ACTION, TOOL_CATEGORIES } from '../api/v1alpha1/actions.ts';
import { TemperError } from '../lib/errors.ts';
import { printable } from '../lib/escape.ts';
import { type Json, parseUntrustedJson } from '../lib/json.ts';
import { splitPort } from '../policy/hosts.ts';
import type { PolicyRequest } from '../policy/types.ts';
import type { ToolDescriptor } from '../tools/contract.ts';

/** A question to the policy, as it is typed. */
export interface PolicyQuestion {
  /** What is asked about: exactly one of the first eight. */
  tool?: string;
  /** `host` or `host:port`; 443 without one. */
  host?: string;
  file?: string;
  memory?: string;
  message?: string;
  model?: string;
  /** Mode of the tool to be forged. */
  forge?: string;
  promote?: string;
  /** JSON text: the arguments of `tool`; without them the question is whether it may be listed. */
  input?: string;
  /** For a tool that is not built in. */
  category?: string;
  action?: string;
  /** Of `file` and `memory`: write instead of read. */
  write?: boolean;
  /** Needs of `forge`. */
  api?: string[];
  domain?: string[];
  path?: string[];
  /** Of `promote`: Agent, or Shared. */
  tier?: string;
}

const QUESTIONS = ['tool', 'host', 'file', 'memory', 'message', 'model', 'forge', 'promote'] as const;

/** Throws TEMPER_USAGE when the question is none, or more than one. */
export function requestOf(options: PolicyQuestion, tools: readonly ToolDescriptor[]): PolicyRequest {
  const asked = QUESTIONS.filter((name) => options[name] !== undefined);
  const [question] = asked;
  if (question === undefined || asked.length > 1) {
    throw usage(`ask about exactly one of ${QUESTIONS.map((name) => `--${name}`).join(', ')}`);
  }
  const subject = options[question] ?? '';
  const access = options.write === true ? 'write' : 'read';
  switch (question) {
    case 'tool':
      return toolRequest(subject, options, tools);
    case 'host':
      return hostRequest(subject);
    case 'file':
      return { kind: 'File', path: subject, access };
    case 'memory':
      return { kind: 'Memory', key: subject, access };
    case 'message':
      return { kind: 'Message', agent: subject };
    case 'model':
      return { kind: 'Model', model: subject };
    case 'forge':
      return forgeRequest(subject, options);
    case 'promote':
      return { kind: 'Promote', tool: subject, tier: oneOf('tier', options.tier ?? 'Agent', ['Agent', 'Shared']) };
    default:
      return question satisfies never;
  }
}

function toolRequest(name: string, options: PolicyQuestion, tools: readonly ToolDescriptor[]): PolicyRequest {
  const known = tools.find((tool) => tool.name === name);
  const named = options.category ?? known?.category;
  if (named === undefined) {
    throw usage(
      `no built-in tool is named "${name}": give its --category, or one of ${tools.map((t) => t.name).join(', ')}`,
    );
  }
  const category = oneOf('category', named, TOOL_CATEGORIES);
  return {
    kind: 'Tool',
    name,
    category,
    action: options.action ?? known?.action ?? DEFAULT_ACTION[category],
    forged: known?.forged !== undefined,
    ...(options.input === undefined ? {} : { arguments: parseInput(options.input) }),
  };
}

function parseInput(text: string): Json {
  try {
    return parseUntrustedJson(text);
  } catch (error) {
    throw new TemperError('TEMPER_USAGE', '--input is not JSON', { cause: error });
  }
}

function hostRequest(text: string): PolicyRequest {
  const split = splitPort(text);
  if (split === undefined) throw usage(`--host "${text}" is not host:port; write an IPv6 address in brackets`);
  return { kind: 'Network', host: split.host, port: Number(split.port ?? 443) };
}

function forgeRequest(mode: string, options: PolicyQuestion): PolicyRequest {
  return {
    kind: 'Forge',
    mode: oneOf('forge', mode, ['Compose', 'Sandbox']),
    apis: (options.api ?? []).map((api) => oneOf('api', api, ['fetch', 'fs.readFile', 'crypto', 'clock', 'random'])),
    domains: options.domain ?? [],
    paths: options.path ?? [],
  };
}

function oneOf<T extends string>(option: string, text: string, allowed: readonly T[]): T {
  const found = allowed.find((value) => value === text);
  if (found === undefined) throw usage(`--${option} "${text}" is none of ${allowed.join(', ')}`);
  return found;
}

export function usage(message: string): TemperError {
  return new TemperError('TEMPER_USAGE', printable(message, 1_000));
}
