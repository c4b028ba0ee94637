import type { ToolArtifact } from '../api/v1alpha1/emergenttool.ts';
import { TemperError } from '../lib/errors.ts';
import type { Json, JsonObject } from '../lib/json.ts';
import type { Decider } from '../policy/types.ts';
import type { HostCalls } from '../sandbox/port.ts';
import type { CallContext, CallerContext, Tool, ToolDescriptor, ToolView } from '../tools/contract.ts';
import type { EventSink } from '../tools/events.ts';
import { FORGE_TOOL_NAME } from '../tools/forge-test-call.ts';
import type { Forge } from './forge.ts';
import type { ToolCandidate, ForgeCaller, ForgeReview, RefusedTool, RejectionRecorder } from './types.ts';

export interface ForgeToolDeps {
  forge: Forge;
  review: ForgeReview;
  sessionTools: RejectionRecorder;
  /** The current policy, tools and event sink of the agent that forges. */
  context(caller: CallerContext): {
    decider: Decider;
    view: ToolView;
    events: EventSink;
    /** The model that wrote the request; it may not judge it. */
    authorModel: string;
    hostCalls(artifact: ToolArtifact): HostCalls;
    replacesSessionTools?: boolean;
    /** Names that no forged tool may have, whatever the view has. */
    reservedNames?: ReadonlySet<string>;
    owner: string;
  };
}

const DESCRIPTION = `Make a new tool when none fits. It is tested at once. If every gate passes, call it by its name at once, also later in this answer; otherwise the error says what to change.
mode "sandbox": code defines function execute(input) in plain JavaScript: no imports, timers or I/O; fetch (hosts in domains), fs.readFile(path) (paths in paths), crypto only if named in allowlist. Returns JSON.
mode "compose": steps [{name, tool, inputMapping, condition?}] call existing tools; texts may hold $input.a, $prev.b, $steps.NAME.c; the last output is the result.
testCases: real inputs with exact expectedOutput; for tools with side effects add fixtures [{tool, output}].`;

/** Permissive on purpose: request normalisation and the shape gate give better errors than a schema can. */
const INPUT_SCHEMA: JsonObject = {
  type: 'object',
  properties: {
    name: { type: 'string', description: 'snake_case, e.g. csv_rows' },
    description: { type: 'string' },
    inputSchema: { description: 'JSON Schema of type object' },
    outputSchema: { description: 'JSON Schema' },
    implementation: {
      description: '{mode: "sandbox", code, allowlist?, domains?, paths?} or {mode: "compose", steps}',
    },
    testCases: { description: '[{input, expectedOutput, fixtures?}]' },
  },
};

const FORGE_EXAMPLE: JsonObject = {
  name: 'count_words',
  description: 'Counts the words of a text.',
  inputSchema: {
    type: 'object',
    properties: { text: { type: 'string' } },
    required: ['text'],
    additionalProperties: false,
  },
  outputSchema: {
    type: 'object',
    properties: { words: { type: 'integer' } },
    required: ['words'],
    additionalProperties: false,
  },
  implementation: {
    mode: 'sandbox',
    code: 'function execute(input) { return { words: input.text.split(/\\s+/).filter((word) => word !== "").length }; }',
  },
  testCases: [
    { input: { text: 'two words' }, expectedOutput: { words: 2 } },
    { input: { text: '' }, expectedOutput: { words: 0 } },
  ],
};

export const FORGE_TOOL: ToolDescriptor = {
  name: FORGE_TOOL_NAME,
  description: DESCRIPTION,
  inputSchema: INPUT_SCHEMA,
  category: 'code_execution',
  action: 'code:create',
  sideEffects: true,
  locality: 'Local',
  examples: [FORGE_EXAMPLE],
  failures: [
    { code: 'TEMPER_FORGE_TEST_FAILED', when: 'a test case has another output than expected' },
    { code: 'TEMPER_FORGE_STATIC', when: 'the code uses what no tool may use' },
    { code: 'TEMPER_JUDGE_REFUSED', when: 'the judge refuses the tool' },
  ],
};

/** The tool with which an agent makes tools. Throws a refusal with the code and the message of the gate. */
export function createForgeTool(deps: ForgeToolDeps): Tool {
  return { descriptor: FORGE_TOOL, nestedOrigin: 'ForgeTest', call: (input, context) => forge(input, context, deps) };
}

async function forge(input: Json, context: CallContext, deps: ForgeToolDeps): Promise<Json> {
  if (context.session === '') {
    throw new TemperError('TEMPER_FORGE_NO_SESSION', 'forging needs a session; send the message in one');
  }
  const { authorModel, ...agentContext } = deps.context(context);
  const caller: ForgeCaller = {
    agent: context.agent,
    namespace: context.namespace,
    session: context.session,
    rootMessage: context.rootMessage,
    authorModel,
  };
  const prepared = await deps.forge.check(
    { request: input },
    { ...agentContext, invoke: context.invoke, op: context.op },
  );
  if (isRefused(prepared)) {
    await deps.sessionTools.recordRejected(prepared, caller);
    throw refusal(prepared);
  }
  const result = await deps.review.submit(prepared, caller, context.op);
  if (!result.accepted) throw refusal(result);
  const { artifact, digest, evidence } = result;
  return {
    tool: artifact.name,
    digest,
    tier: 'Session',
    inputSchema: JSON.parse(artifact.inputSchema) as Json,
    outputSchema: JSON.parse(artifact.outputSchema) as Json,
    ...(evidence.warnings.length === 0 ? {} : { warnings: evidence.warnings }),
  };
}

function isRefused(prepared: ToolCandidate | RefusedTool): prepared is RefusedTool {
  return 'accepted' in prepared;
}

function refusal(refused: RefusedTool): TemperError {
  const { name, gate, code, message } = refused;
  return new TemperError(code, `"${name}" was refused at gate ${gate}: ${message}`, {
    details: { gate, class: refused.class },
  });
}
