import type { ToolDescriptor } from '../../../tools/contract.ts';

export const RUN_TOOL_NAME = 'agent_run';

const PATTERN = { type: 'string', minLength: 1, maxLength: 256 };

const CONFIG = {
  type: 'object',
  properties: {
    model: { type: 'string', minLength: 1, maxLength: 256, description: 'One of your own models' },
    temperature: { type: 'number', minimum: 0, maximum: 2 },
    maxOutputTokens: { type: 'integer', minimum: 1, maximum: 1_000_000 },
    maxTurns: { type: 'integer', minimum: 1, maximum: 1_000 },
    maxSteps: { type: 'integer', minimum: 1, maximum: 1_000 },
    persistent: { type: 'boolean', enum: [false], description: 'A run always ends' },
    contextEdit: { type: 'boolean', enum: [false], description: 'No agent edits its own history' },
  },
  additionalProperties: false,
};

export const RUN_TOOL: ToolDescriptor = {
  name: RUN_TOOL_NAME,
  description:
    'Run an agent for one task and get its answer: the text, or with `returns` an object that matches it. It has its own conversation, and those of your tools that `allowedTools` names. With `name` it continues the earlier runs of this name in this session.',
  inputSchema: {
    type: 'object',
    properties: {
      prompt: { type: 'string', minLength: 1, maxLength: 65_536, description: 'Its system prompt' },
      message: {
        type: 'string',
        minLength: 1,
        maxLength: 200_000,
        description: 'Its task; "Execute the task." when absent',
      },
      config: CONFIG,
      allowedTools: {
        type: 'array',
        items: PATTERN,
        maxItems: 100,
        description: 'Names or patterns of the tools that it may call; all of yours but agent_run when absent',
      },
      returns: { type: 'object', description: 'A JSON Schema of an object that it must answer with' },
      events: {
        type: 'string',
        minLength: 1,
        maxLength: 128,
        description: 'A subject under which events of the namespace say what it does, such as reports.progress',
      },
      name: { type: 'string', pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$', maxLength: 63 },
      memory: { type: 'object', description: 'Members of its `memory`, for programs only' },
    },
    required: ['prompt'],
    additionalProperties: false,
  },
  category: 'code_execution',
  action: 'docs:write',
  // Its tools may have some, and it costs tokens: a forge test must not call it.
  sideEffects: true,
  locality: 'Local',
  examples: [
    {
      prompt: 'You read logs and name the first error.',
      message: 'Read logs/app.log.',
      allowedTools: ['file_read', 'text_search'],
      config: { maxTurns: 10 },
    },
  ],
  failures: [
    { code: 'TEMPER_CHILD_REFUSED', when: 'the run would have more than you have' },
    { code: 'TEMPER_STEP_LIMIT', when: 'the run needs more calls than it has' },
  ],
};
