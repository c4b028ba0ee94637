import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import { TemperError } from '../../lib/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import { type ManifestCheck, specOf } from './wanted-child.ts';

/** What an agent asks for with `spawn_specialist`. */
export interface WantedSpecialist {
  /** The role as a part of a name. */
  name: string;
  spec: AgentSpec;
  role: string;
  instructions: string;
  task: string;
  reason: string;
  tools: readonly string[];
}

const ROLE = /^[a-zA-Z][a-zA-Z0-9_-]{0,39}$/;
/** Words that conversations with models use for who speaks. */
const RESERVED: ReadonlySet<string> = new Set(['system', 'user', 'assistant', 'tool']);
const LIMITS = { instructions: 8_192, task: 16_384, reason: 1_024 } as const;
const MAX_TOOLS = 20;

/** Reads the arguments of `spawn_specialist`, which a model wrote. Throws TEMPER_TOOL_INPUT_INVALID with the field and the rule. */
export function wantedSpecialist(input: Json, parent: AgentSpec, manifests: ManifestCheck): WantedSpecialist {
  if (!isJsonObject(input)) throw invalid('the arguments are not an object');
  const { role, tools = [] } = input;
  if (typeof role !== 'string' || !ROLE.test(role)) {
    throw invalid('role has to start with a letter and consist of at most 40 letters, digits, dashes and underscores');
  }
  if (RESERVED.has(role.toLowerCase())) throw invalid(`role "${role}" is reserved; name what it does`);
  const texts = {
    instructions: textOf(input, 'instructions'),
    task: textOf(input, 'task'),
    reason: textOf(input, 'reason'),
  };
  if (!Array.isArray(tools) || tools.length > MAX_TOOLS || !tools.every((tool) => typeof tool === 'string')) {
    throw invalid(`tools has to be a list of at most ${MAX_TOOLS} names`);
  }
  const name = role.toLowerCase().replaceAll('_', '-').replace(/-+$/, '');
  const spec = specOf({ name, prompt: texts.instructions, tools, spec: {} }, parent, manifests);
  return { name, spec, ...texts, role, tools };
}

function textOf(input: JsonObject, key: keyof typeof LIMITS): string {
  const value = input[key];
  if (typeof value === 'string' && value.trim() !== '' && value.length <= LIMITS[key]) return value;
  throw invalid(`${key} has to be a text of at most ${LIMITS[key]} characters`);
}

function invalid(why: string): TemperError {
  return new TemperError('TEMPER_TOOL_INPUT_INVALID', printable(`the specialist cannot be started: ${why}`, 1_000));
}
