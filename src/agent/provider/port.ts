import type { FinishReason } from '../../bus/port.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import type { ModelMessage, TokenUsage, ToolCall } from '../../models/port.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';
import type { AgentEvent } from '../../tools/events.ts';
import type { ResumePoint } from '../session/resume.ts';

/**
 * The boundary between the policy of an agent and what loops over its model. Tools, hooks, limits, the value that the agent returns, taint
 * and the stored history stay outside, with the host. Only JSON and an abort signal cross the boundary, so that a provider can be another
 * process. What a provider keeps for itself, such as a model or a process, it gets when it is created.
 */
export interface AgentProvider {
  /**
   * Works on one message until it has an answer. Ends soon after the signal of `op` aborts. Throws the errors of its model, those of the
   * host unchanged, and TEMPER_TIMEOUT or TEMPER_CANCELLED.
   */
  run(task: ProviderTask, host: ProviderHost, op: CallOptions): Promise<TaskAnswer>;
}

/** The model of a message, as the manifest and the routing choose it. */
interface TaskConfig {
  /** `provider/model`, or an alias. */
  model: string;
  temperature?: number;
  maxOutputTokens: number;
  /** Time of one call of the model. */
  modelTimeoutMs: number;
}

export interface ProviderTask {
  session: string;
  /** The text of the message. */
  message: string;
  config: TaskConfig;
  /** What the model gets before the first message of the session. Absent for an agent without a context. */
  context?: string;
  /** Number of items that the session has before the message. */
  base: number;
  /** What earlier, interrupted attempts at the message left. */
  resume?: ResumePoint;
}

export interface TaskAnswer {
  reply: string;
  finishReason: FinishReason;
  /** The requests whose decisions the message waits for. It has no reply then, and is handled again after a decision. */
  parked?: string[];
}

/** What a provider asks its host for. The host checks each call; a provider has no other way to a tool. */
export interface ProviderHost {
  /** The system prompt and the tools at this moment. They change when the agent forges a tool. */
  offer(): Promise<ProviderOffer>;
  /** The items of the session, the message and what was added since included. */
  history(): Promise<readonly ModelMessage[]>;
  /** Adds items to the session. Durable when it resolves, unless `deferrable`; then at the latest with the end of the message. */
  append(items: ModelMessage[], deferrable: boolean): Promise<void>;
  /** Makes the calls of one answer, with every check. Ids are unique in the answer. The host adds the results to the session. */
  invoke(calls: ToolCall[]): Promise<CallsOutcome>;
  /** Reports an event and returns what to do; undefined: what the provider would do by itself. */
  hook(event: ProviderEvent): Promise<ProviderDirective | undefined>;
  /** Reports what needs no answer. Must not throw. */
  report(report: ProviderReport): void;
}

export interface ProviderOffer {
  prompt: string;
  /** What the model may call, in an order that stays the same. */
  tools: ToolDescriptor[];
  /** What the model gets behind the text of the message, in the requests for it alone: no session stores it. Absent: nothing. */
  note?: string;
  /** In code mode, the tools that programs call. The model itself has one tool, which runs them. */
  programTools?: ToolDescriptor[];
}

export interface CallsOutcome {
  /** The items that were added to the session, results first. A parked call has none. */
  items: ModelMessage[];
  /** The requests that calls wait for: the provider ends with them. */
  parked?: string[];
  /** A program ended the message with this reply. */
  reply?: string;
  /** As in the directive. */
  conclude?: string;
}

/** The events that a provider reports. Those of tool calls are the host's own. */
export type ProviderEvent =
  | { type: 'turn-start'; turnNumber: number }
  | { type: 'message'; text: string }
  | { type: 'reasoning'; text: string }
  /** `answer`: the message ends with it; absent when another turn follows. */
  | { type: 'turn-end'; turnNumber: number; result: string; answer?: TaskAnswer }
  /** The model failed. */
  | { type: 'error'; error: { code: ErrorCode; message: string }; attempt: number }
  | { type: 'retry'; code: ErrorCode; attempt: number; delayMs: number };

export type ProviderDirective =
  /** End with this reply, which the session gets as the last answer. */
  | { stop: true; result: string }
  /** Another turn, after this message of the user; at `error` another attempt. */
  | { continue: true; message?: string }
  /** A limit is reached: add this message of the user, make one closing turn without tool calls, and end with its text. */
  | { conclude: string };

/** Parts of an answer as they arrive, and what happens between a provider and its model. */
export type ProviderNote = Extract<
  AgentEvent,
  { type: 'message' | 'retry' | 'compaction' | 'warning' | 'error' | 'turn-end' }
>;
export type NoteSink = (note: ProviderNote) => void;

export type ProviderReport =
  | ProviderNote
  /** What one model call used. `turns` is 0 for a call that is no turn, such as that of a summary. */
  | ({ type: 'usage'; turns: 0 | 1 } & TokenUsage);
