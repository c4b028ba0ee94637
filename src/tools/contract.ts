import type { Tier } from '../api/v1alpha1/common.ts';
import type { Digest } from '../lib/canonical.ts';
import type { ErrorCode } from '../lib/error-codes.ts';
import type { Json, JsonObject } from '../lib/json.ts';
import type { Op } from '../lib/operation.ts';
import type { ActionType, ToolCategory } from '../policy/types.ts';

/** What is known of a tool before it is called. */
export interface ToolDescriptor {
  name: string;
  description: string;
  inputSchema: JsonObject;
  /** Absent: any output. */
  outputSchema?: JsonObject;
  category: ToolCategory;
  action: ActionType;
  /** Does a call change anything outside the tool itself? Decides whether a forge test may really call it. */
  sideEffects: boolean;
  /** Local: effects end in the pod. Brokered: gateway or egress decides and acts. */
  locality: 'Local' | 'Brokered';
  /** Present for forged tools only. */
  forged?: { digest: Digest; tier: Tier };
}

/** Who calls, for whom, in which conversation. */
export interface CallerContext {
  agent: string;
  namespace: string;
  session: string;
  /** The message that began it all; uses tied to the same root count as one witness. */
  rootMessage: string;
  /** Names (with digest for forged tools) of the tools on the stack, outermost first. */
  stack: readonly string[];
}

/** Calls another tool on behalf of a running one, through every check the agent's own calls pass. */
export type NestedCall = (tool: string, input: Json, op: Op) => Promise<ToolResult>;

export interface CallContext extends CallerContext {
  op: Op;
  invoke: NestedCall;
}

export interface Tool {
  readonly descriptor: ToolDescriptor;
  /** Returns the output or throws TemperError. The input was validated; it is a copy of its own. */
  call(input: Json, context: CallContext): Promise<Json>;
}

export interface ToolFailure {
  code: ErrorCode;
  message: string;
  /** The policy rule, when one decided. */
  rule?: string;
}

export type ToolResult =
  /** `notice` is for the model, beside the output: that it repeats itself, for one. */
  | { ok: true; tool: string; output: Json; milliseconds: number; notice?: string }
  | { ok: false; tool: string; error: ToolFailure; milliseconds: number };

/** The tools one agent sees in one session, in lookup order: built-in, session, agent, shared; no name twice. */
export interface ToolView {
  find(name: string): Tool | undefined;
  list(): readonly ToolDescriptor[];
}

/** The only way a tool is called. */
export interface Invoker {
  invoke(name: string, input: Json, caller: CallerContext, op: Op): Promise<ToolResult>;
  /** The tools the caller could be allowed to call. */
  visible(caller: CallerContext): readonly ToolDescriptor[];
}
