import { TemperError } from '../../lib/errors.ts';
import { member } from '../../lib/json.ts';
import type { EventSink } from '../../tools/events.ts';
import type { Tool, ToolDescriptor } from '../../tools/contract.ts';
import { callModel, type ModelCallDeps } from '../loop/model-call.ts';

export interface GenerateTextDeps extends ModelCallDeps {
  /** `provider/model`, usually the agent's own. */
  modelName: string;
  maxOutputTokens: number;
}

const TIMEOUT_MS = 50_000;
const IGNORE_EVENTS: EventSink = () => undefined;

/** The gateway recognises the calls of the tool by it. */
export const TEXT_SYSTEM = 'Answer the request with the text it asks for, and nothing else.';

export const GENERATE_TEXT: ToolDescriptor = {
  name: 'generate_text',
  description:
    'Ask the model once and get its answer: {text, output} (both the same text). It sees the prompt alone: no tools, no conversation.',
  inputSchema: {
    type: 'object',
    properties: { prompt: { type: 'string', minLength: 1, maxLength: 200_000 } },
    required: ['prompt'],
    additionalProperties: false,
  },
  outputSchema: {
    type: 'object',
    properties: { text: { type: 'string' }, output: { type: 'string' } },
    required: ['text', 'output'],
    additionalProperties: false,
  },
  category: 'code_execution',
  action: 'docs:write',
  // Costs tokens and is not deterministic, so a forge test must not call it.
  sideEffects: true,
  locality: 'Brokered',
};

/** `generate_text`: one model call for composed tools. Charged to the agent like its own turns. */
export function generateTextTool(deps: GenerateTextDeps): Tool {
  return {
    descriptor: GENERATE_TEXT,
    async call(input, context) {
      const prompt = member(input, 'prompt');
      const request = {
        model: deps.modelName,
        system: TEXT_SYSTEM,
        messages: [{ role: 'user' as const, text: typeof prompt === 'string' ? prompt : '' }],
        tools: [],
        maxOutputTokens: deps.maxOutputTokens,
      };
      const { text, stopReason } = await callModel(deps, request, TIMEOUT_MS, IGNORE_EVENTS, context.op);
      if (stopReason === 'length') {
        throw new TemperError(
          'TEMPER_TOOL_FAILED',
          `the answer was cut at ${deps.maxOutputTokens} tokens; ask for less`,
        );
      }
      if (stopReason === 'refusal') throw new TemperError('TEMPER_TOOL_FAILED', 'the model declined to answer');
      return { text, output: text };
    },
  };
}
