import type { AgentSpec } from '../api/v1alpha1/agent.ts';
import type { Tier } from '../api/v1alpha1/common.ts';
import type { Digest } from '../lib/canonical.ts';
import type { ErrorCode } from '../lib/error-codes.ts';
import type { Json, JsonObject } from '../lib/json.ts';
import type { CallOptions } from '../lib/call-options.ts';
import type { ActionType, ToolCategory } from '../policy/types.ts';
import type { CallRecorder } from './recording/call-recorder.ts';

/** How capabilities belong together. */
export type LinkType = 'DependsOn' | 'ComposedWith' | 'TaggedWith' | 'SameCategory';

/** A link that a capability declares. */
export interface CapabilityLink {
  type: LinkType;
  /** The ID of the other capability, as `kind:name`. */
  target: string;
  /** From 0 to 1. */
  weight: number;
}

/** What the manifest of a capability says about it for a search. */
export interface CapabilityTopics {
  category?: string;
  tags: readonly string[];
  requiredTools: readonly string[];
  links: readonly CapabilityLink[];
}

/** An error of a call, and when a call has it. */
export interface ToolFailureCase {
  code: ErrorCode;
  when: string;
}

/** The description of a tool, known before any call. */
export interface ToolDescriptor {
  name: string;
  description: string;
  inputSchema: JsonObject;
  /** Absent: any output. */
  outputSchema?: JsonObject;
  /** Inputs of a call. */
  examples?: readonly Json[];
  /** Texts about when a call helps. */
  usage?: readonly string[];
  /** How a call fails, besides what any call may fail with. */
  failures?: readonly ToolFailureCase[];
  /** For tools that a Capability describes. */
  topics?: CapabilityTopics;
  category: ToolCategory;
  action: ActionType;
  /** Whether a call changes anything outside the tool itself. A forge test does not call a tool with side effects. */
  sideEffects: boolean;
  /** Local: effects end in the pod. Brokered: gateway or egress decides and acts. */
  locality: 'Local' | 'Brokered';
  /** Its results are content of an MCP server or of a host, whatever its category is. */
  resultOrigin?: 'Mcp' | 'Web';
  /** Of a tool that a gateway executes: the hosts that its calls are sent to. */
  hosts?: readonly string[];
  /** Present for forged tools only. */
  forged?: {
    digest: Digest;
    tier: Tier;
    /** RFC 3339. Absent for a tool that is in no registry. */
    acceptedAt?: string;
    /** The tools that its steps call, as they name them. */
    steps?: readonly string[];
    /** Its output depends on its input alone. */
    pure?: boolean;
    /** The hosts that it may send to, as it declares them. */
    hosts?: readonly string[];
    /** A user imported it for all sessions of the agent. */
    imported?: boolean;
  };
}

/**
 * Who makes a call. Agent: the model of the agent. Code: a program of the model, in the session runner. Compose: a step of a composed
 * tool. ForgeTest: a forge that tests a tool. Hook: a hook of the agent. Schedule, Trigger: a schedule or an event, without a model in between.
 * Client: a program of a user, over MCP.
 */
export const CALL_ORIGINS = ['Agent', 'Code', 'Compose', 'ForgeTest', 'Hook', 'Schedule', 'Trigger', 'Client'] as const;
type CallOrigin = (typeof CALL_ORIGINS)[number];

/** A run of `agent_run`: an agent that works below a message, with a part of the tools. */
export interface RunContext {
  /** Identifies the run in events. */
  id: string;
  /** The ids of the contexts around it, outermost first. The first one is the root message. */
  ancestors: readonly string[];
  /** What the run may call. Each list narrows the one before it. */
  tools: readonly ToolFilter[];
  /** The agent of the run, which a run below it does not exceed. */
  spec: AgentSpec;
}

export interface ToolFilter {
  allows(tool: string): boolean;
  /** The allowed tools in words. */
  describe(): string;
}

/** The agent that calls a tool, and the session and message in which it does. */
export interface CallerContext {
  agent: string;
  namespace: string;
  session: string;
  /** The message at the start of the chain; uses with the same root message count as one piece of evidence. */
  rootMessage: string;
  /** The tools on the call stack, outermost first: digests of forged tools, names of the others. */
  stack: readonly string[];
  /** Who makes this call; the stack says below which tools. All calls below a forge test are forge tests, and those below a hook are calls of the hook. */
  origin: CallOrigin;
  /** Absent for calls of the message itself. */
  run?: RunContext;
  /** What an approver permitted this call: not the calls below it. */
  approved?: ApprovedCall;
}

/** The rule that escalated a call, and patterns for the hosts that the approver saw. */
export interface ApprovedCall {
  rule: string;
  hosts: readonly string[];
}

/** Calls another tool on behalf of a running one, with the same checks as a call by the agent. Returns failures as a result. */
export type NestedCall = (tool: string, input: Json, op: CallOptions) => Promise<ToolResult>;

export interface CallContext extends CallerContext {
  op: CallOptions;
  invoke: NestedCall;
  /** Records what a forged tool gets from outside. */
  recorder?: CallRecorder;
}

export interface Tool {
  readonly descriptor: ToolDescriptor;
  /** The origin of the calls that this tool makes. Default `Compose`. */
  readonly nestedOrigin?: CallOrigin;
  /** The tool may run again below itself. It bounds the depth itself. */
  readonly mayCallItself?: true;
  /**
   * Throws what a call refuses by its arguments and its caller alone, before it opens a file, resolves a name or asks a server. `call`
   * makes the same check; an explanation of a call ends with it.
   */
  check?(input: Json, caller: CallerContext): void;
  /** Returns the output or throws TemperError. The input is validated, and is a copy that the tool may change. */
  call(input: Json, context: CallContext): Promise<Json>;
}

export interface ToolFailure {
  code: ErrorCode;
  message: string;
  /** The policy rule that decided, if any. */
  rule?: string;
}

/** `approval` is the request whose approval permitted the call. */
export type ToolResult =
  /** `notice` is a hint for the model beside the output, such as a warning of the loop guard. */
  | { ok: true; tool: string; output: Json; milliseconds: number; notice?: string; approval?: string }
  | { ok: false; tool: string; error: ToolFailure; milliseconds: number; approval?: string };

/** A call that did not run and has no result: it waits for the decision about a request. */
export interface ParkedCall {
  /** The name of the ApprovalRequest. */
  parked: string;
  tool: string;
}

/** The tools that an agent sees in a session, in lookup order: built-in, session, agent, shared. Names are unique. */
export interface ToolView {
  find(name: string): Tool | undefined;
  list(): readonly ToolDescriptor[];
}

/** The only way a tool is called. */
export interface Invoker {
  /**
   * Calls a tool with every check and records the call. A refusal, a failure and a timeout of the tool are results with
   * `ok: false`; `milliseconds` covers the whole call, approval included. Throws only when the audit record cannot be
   * written; the tool may have run by then. Not idempotent: a repeated call runs the tool again.
   * A call that needs an approval waits for it until its deadline.
   */
  invoke(name: string, input: Json, caller: CallerContext, op: CallOptions): Promise<ToolResult>;
  /**
   * The same for a call whose caller can park its turn, as long as no other tool makes the call. To resume, repeat the call with the
   * same `op.key`: it runs when its request was approved.
   */
  invokeOrPark(name: string, input: Json, caller: CallerContext, op: CallOptions): Promise<ToolResult | ParkedCall>;
  /** The tools that the policy does not deny to the caller. */
  visible(caller: CallerContext): readonly ToolDescriptor[];
}
