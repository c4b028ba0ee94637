import type { AgentSpec } from '../../../api/v1alpha1/agent.ts';
import { TemperError } from '../../../lib/errors.ts';
import { isJsonObject, type Json, type JsonObject, member } from '../../../lib/json.ts';
import { inherits } from '../../../policy/children/inherits.ts';
import type { RunningAgent } from '../../message.ts';

/** The arguments of `agent_run`, after the check of their schema. */
export interface RunRequest {
  prompt: string;
  message: string;
  config: JsonObject;
  allowedTools?: string[];
  returns?: JsonObject;
  /** The subject of events that say what the run does. */
  events?: string;
  name?: string;
  memory?: JsonObject;
}

const DEFAULT_MESSAGE = 'Execute the task.';
const DEFAULT_LIMIT = 30;
/** A program starts with no more of `memory` than a session stores. */
const MAX_MEMORY_CHARACTERS = 65_536;

export function runRequest(input: Json): RunRequest {
  const { prompt, message, config, allowedTools, returns, events, name, memory } = isJsonObject(input) ? input : {};
  return {
    prompt: textOf(prompt),
    message: message === undefined ? DEFAULT_MESSAGE : textOf(message),
    config: isJsonObject(config) ? config : {},
    ...(Array.isArray(allowedTools) ? { allowedTools: allowedTools.map(textOf) } : {}),
    ...(isJsonObject(returns) ? { returns } : {}),
    ...(events === undefined ? {} : { events: textOf(events) }),
    ...(name === undefined ? {} : { name: textOf(name) }),
    ...(isJsonObject(memory) ? { memory } : {}),
  };
}

/**
 * The agent of a run: its caller with another prompt, within its models and limits. The same rules as for child agents decide. Throws
 * TEMPER_CHILD_REFUSED when it asks for more, and TEMPER_TOOL_INPUT_INVALID for memory that nothing could read. Pure.
 */
export function nestedAgent(
  { prompt, config, allowedTools, memory }: RunRequest,
  parent: RunningAgent,
  resolve: (name: string) => string,
): RunningAgent {
  const { spec } = parent;
  const { trustPolicyRef, invocation, disclosure, limits = {} } = spec;
  assertMemory(memory, invocation);
  const wanted: AgentSpec = {
    trustPolicyRef,
    model: modelOf(config, spec.model, resolve),
    prompt: { system: prompt },
    ...(invocation === undefined ? {} : { invocation }),
    ...(disclosure === undefined ? {} : { disclosure }),
    limits: {
      turns: numberAt(config, 'maxTurns') ?? Math.min(limits.turns ?? DEFAULT_LIMIT, DEFAULT_LIMIT),
      steps: numberAt(config, 'maxSteps') ?? Math.min(limits.steps ?? DEFAULT_LIMIT, DEFAULT_LIMIT),
      ...(limits.outputCharacters === undefined ? {} : { outputCharacters: limits.outputCharacters }),
    },
  };
  const [refused] = inherits(wanted, spec);
  if (refused !== undefined) throw new TemperError('TEMPER_CHILD_REFUSED', `agent_run: ${refused.message}`);
  const tools = allowedTools ?? spec.grants?.tools;
  return { ...parent, spec: { ...wanted, ...(tools === undefined ? {} : { grants: { tools } }) } };
}

function modelOf(config: JsonObject, own: AgentSpec['model'], resolve: (name: string) => string): AgentSpec['model'] {
  const { routing, temperature: warmth, maxOutputTokens: most, primary } = own;
  const model = member(config, 'model');
  const temperature = numberAt(config, 'temperature');
  const maxOutputTokens = numberAt(config, 'maxOutputTokens') ?? most;
  const chosen = typeof model === 'string' ? { primary: resolve(model) } : { primary, ...(routing && { routing }) };
  return {
    ...chosen,
    ...(temperature === undefined
      ? warmth === undefined
        ? {}
        : { temperature: warmth }
      : { temperature: String(temperature) }),
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
  };
}

function assertMemory(memory: JsonObject | undefined, invocation: AgentSpec['invocation']): void {
  if (memory === undefined) return;
  if (invocation !== 'Code') {
    throw invalid('agent_run: only programs read memory; leave it out, or set spec.invocation to Code');
  }
  const { length } = JSON.stringify(memory);
  if (length <= MAX_MEMORY_CHARACTERS) return;
  throw invalid(`agent_run: memory has ${length} characters, above ${MAX_MEMORY_CHARACTERS}; give less, or a file`);
}

function invalid(message: string): TemperError {
  return new TemperError('TEMPER_TOOL_INPUT_INVALID', message);
}

function numberAt(value: JsonObject, key: string): number | undefined {
  const found = member(value, key);
  return typeof found === 'number' ? found : undefined;
}

function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : '';
}
