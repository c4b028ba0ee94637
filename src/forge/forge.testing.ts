/** Fixtures for the tests of the forge: a policy, tools, a forge context and a registry of accepted tools. */
import type { AgentSpec } from '../api/v1alpha1/agent.ts';
import type { ToolArtifact } from '../api/v1alpha1/emergenttool.ts';
import type { TrustPolicySpec } from '../api/v1alpha1/trustpolicy.ts';
import { systemClock } from '../lib/clock.ts';
import { TemperError } from '../lib/errors.ts';
import type { Json, JsonObject } from '../lib/json.ts';
import type { CallOptions } from '../lib/call-options.ts';
import { createDecider } from '../policy/decider.ts';
import type { Decider } from '../policy/types.ts';
import type { HostCalls } from '../sandbox/port.ts';
import type { CallContext, NestedCall, Tool, ToolDescriptor, ToolView } from '../tools/contract.ts';
import type { AgentEvent } from '../tools/events.ts';
import { createToolView } from '../tools/view.ts';
import type { ForgeContext } from './forge.ts';
import { buildArtifact } from './gates/build.ts';
import { normalizeRequest } from './normalization/normalize-request.ts';
import { checkShape } from './gates/shape.ts';
import type { AcceptedTool, ToolCandidate, ForgeCaller, Judge, RefusedTool, SessionToolRegistry } from './types.ts';

export function anOp(milliseconds = 60_000): CallOptions {
  return { signal: new AbortController().signal, deadline: systemClock.monotonic() + milliseconds, key: 'test' };
}

interface ForgePermissions {
  level?: string;
  agent?: AgentSpec['forge'];
  policy?: TrustPolicySpec['forge'];
  tools?: string[];
}

/** An agent at level restricted that may forge in both modes and call every tool. */
export function aDecider({ level = 'restricted', agent, policy, tools = ['*'] }: ForgePermissions = {}): Decider {
  const spec: AgentSpec = {
    trustPolicyRef: { name: 'test' },
    model: { primary: 'test/model' },
    prompt: { system: 'test' },
    grants: { tools },
    forge: { enabled: true, modes: ['Compose', 'Sandbox'], ...agent },
  };
  return createDecider({
    agent: { name: 'smith', namespace: 'test', spec },
    policy: { name: 'test', spec: { level: { ceiling: level }, forge: policy ?? {} } },
    level,
    tainted: false,
    workspace: '/workspace',
  });
}

export function aTool(name: string, call: (input: JsonObject) => Json, descriptor: Partial<ToolDescriptor> = {}): Tool {
  return {
    descriptor: {
      name,
      description: name,
      inputSchema: { type: 'object' },
      category: 'code_execution',
      action: 'code:read',
      sideEffects: false,
      locality: 'Local',
      ...descriptor,
    },
    call: async (input) => call(input as JsonObject),
  };
}

/** Calls a tool of the view, as the invoker would for a permitted call. */
function invokeIn(view: ToolView): NestedCall {
  return async (tool, input, op) => {
    const found = view.find(tool.split('@')[0] ?? tool);
    if (found === undefined) throw new TemperError('TEMPER_TOOL_NOT_FOUND', tool);
    const output = await found.call(input, aCall(view, op));
    return { ok: true, tool, output, milliseconds: 0 };
  };
}

export function aCall(view: ToolView, op: CallOptions): CallContext {
  const { agent, namespace, session, rootMessage } = aCaller;
  return { agent, namespace, session, rootMessage, stack: [], origin: 'ForgeTest', op, invoke: invokeIn(view) };
}

export const aCaller: ForgeCaller = {
  agent: 'smith',
  namespace: 'test',
  session: 'session-1',
  rootMessage: 'message-1',
  authorModel: 'test/author',
};

export const denyingHost: HostCalls = {
  call: (api) => Promise.reject(new TemperError('TEMPER_HOST_CALL_DENIED', `${api} is not permitted`)),
};

export interface TestContext extends ForgeContext {
  emitted: AgentEvent[];
}

export function aContext(options: { tools?: Tool[]; decider?: Decider; op?: CallOptions } = {}): TestContext {
  const seen: AgentEvent[] = [];
  const view = createToolView(options.tools ?? []);
  return {
    decider: options.decider ?? aDecider(),
    view,
    invoke: invokeIn(view),
    events: (event) => seen.push(event),
    hostCalls: () => denyingHost,
    op: options.op ?? anOp(),
    emitted: seen,
  };
}

/** A request for a small sandbox tool that passes every gate; `changes` replace members. */
export function aRequest(changes: JsonObject = {}): JsonObject {
  return {
    name: 'double',
    description: 'Doubles a number.',
    inputSchema: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] },
    outputSchema: { type: 'object', properties: { twice: { type: 'number' } }, required: ['twice'] },
    implementation: {
      mode: 'sandbox',
      code: 'function execute(input) { return { twice: input.n * 2 }; }',
      allowlist: [],
    },
    testCases: [
      { input: { n: 2 }, expectedOutput: { twice: 4 } },
      { input: { n: -0.5 }, expectedOutput: { twice: -1 } },
    ],
    ...changes,
  };
}

/** Builds the artifact of a valid request under generous limits. */
export function artifactOf(request: object): ToolArtifact {
  const shape = checkShape(normalizeRequest(request as JsonObject).request, 1);
  if (!('request' in shape)) throw new TypeError(JSON.stringify(shape.violations));
  return buildArtifact(shape.request, { ...aDecider().forgeLimits }, createToolView());
}

/** Records the registered and the refused tools. */
export class TestRegistry implements SessionToolRegistry {
  readonly accepted: AcceptedTool[] = [];
  readonly refused: RefusedTool[] = [];
  failure: TemperError | undefined;

  register(accepted: AcceptedTool): Promise<void> {
    if (this.failure !== undefined) return Promise.reject(this.failure);
    this.accepted.push(accepted);
    return Promise.resolve();
  }

  recordRejected(refused: RefusedTool): Promise<void> {
    this.refused.push(refused);
    return Promise.resolve();
  }
}

/** Approves everything, and counts its calls. */
export class ApprovingJudge implements Judge {
  asked = 0;

  review(_candidate: ToolCandidate): ReturnType<Judge['review']> {
    this.asked += 1;
    return Promise.resolve({ approved: true, confidence: 1, reasoning: 'yes', model: 'test/judge', promptDigest: '' });
  }
}
