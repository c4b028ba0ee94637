import type { Json, JsonObject } from '../../lib/json.ts';
import type { Decision } from '../../policy/types.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';
import { FORGE_TOOL_NAME } from '../../tools/forge-test-call.ts';
import { GENERATE_TEXT } from '../tools/generate-text.ts';
import { ASK_TOOL } from '../tools/ask-tool.ts';
import { RUN_TOOL_NAME } from '../tools/run/run-descriptor.ts';

/** What a call costs: `low` works in the sandbox, `medium` uses other servers, `high` uses a model. */
export type CostTier = 'low' | 'medium' | 'high';

/** What `load_tool` returns about a tool beside its definition. */
export interface ToolGuide {
  cost: CostTier;
  /** Inputs of a call. */
  examples: Json[];
  /** Texts about when a call helps; absent for a tool without any. */
  usage?: string[];
  /** How a call fails or waits. */
  failures: string[];
  /** Ids for `load_tool_resource`. */
  resources: string[];
}

const MODEL_TOOLS: ReadonlySet<string> = new Set([FORGE_TOOL_NAME, GENERATE_TEXT.name, ASK_TOOL.name, RUN_TOOL_NAME]);
const MAX_SHOWN_EXAMPLES = 2;
const MAX_EXAMPLE_CHARACTERS = 1_000;

export function costTier({ name, locality, forged }: ToolDescriptor): CostTier {
  if (forged === undefined && MODEL_TOOLS.has(name)) return 'high';
  return locality === 'Brokered' ? 'medium' : 'low';
}

/** `decision`: that of the policy about a call with any arguments. */
export function guideOf(tool: ToolDescriptor, decision: Decision): ToolGuide {
  const { usage = [] } = tool;
  return {
    cost: costTier(tool),
    examples: examplesOf(tool).filter(isShort).slice(0, MAX_SHOWN_EXAMPLES),
    ...(usage.length === 0 ? {} : { usage: usage.slice(0, MAX_SHOWN_EXAMPLES) }),
    failures: failuresOf(tool, decision),
    resources: Object.keys(resourcesOf(tool)),
  };
}

/** What `load_tool_resource` returns, by id. */
export function resourcesOf(tool: ToolDescriptor): JsonObject {
  const { outputSchema } = tool;
  const examples = examplesOf(tool);
  return {
    ...(outputSchema === undefined ? {} : { 'output-schema': outputSchema }),
    ...(examples.length === 0 ? {} : { examples }),
  };
}

function examplesOf({ examples = [], inputSchema }: ToolDescriptor): Json[] {
  const { examples: inSchema } = inputSchema;
  return [...examples, ...(Array.isArray(inSchema) ? inSchema : [])];
}

function isShort(example: Json): boolean {
  return JSON.stringify(example).length <= MAX_EXAMPLE_CHARACTERS;
}

function failuresOf(tool: ToolDescriptor, decision: Decision): string[] {
  const { sideEffects, locality, outputSchema, forged, failures = [] } = tool;
  return [
    'TEMPER_TOOL_INPUT_INVALID: the arguments do not match the schema',
    ...failures.map(({ code, when }) => `${code}: ${when}`),
    ...(decision.effect === 'Escalate' ? ['waits for an approval, because of a rule of the policy'] : []),
    ...(locality === 'Brokered' ? ['TEMPER_POLICY_DENIED: the policy refuses these arguments, such as a host'] : []),
    ...(forged !== undefined && outputSchema !== undefined
      ? ['TEMPER_TOOL_OUTPUT_INVALID: the output does not match the schema of the tool']
      : []),
    ...(sideEffects ? ['after a timeout its effects may have happened'] : []),
  ];
}
