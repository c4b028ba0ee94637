import type { Json } from '../../../lib/json.ts';
import type { StopReason, TokenUsage } from '../../port.ts';

/** The answers of a scripted model and their conditions. The reference page describes every member. */
export interface ReplayScript {
  rules: ReplayRule[];
}

export interface ReplayRule {
  /** Shown in errors; a rule without a name is identified by its number. */
  name?: string;
  when?: ReplayCondition;
  /** Maximum number of answers of the rule per conversation. Absent: unlimited. */
  times?: number;
  answer: ReplayAnswer;
}

/** All given members must match. Texts match if they contain the given text; case-sensitive. */
export interface ReplayCondition {
  system?: string;
  lastUser?: string;
  /** Role of the last message. */
  last?: 'user' | 'tool';
  /** Matches one of the tool results at the end of the conversation. */
  lastTool?: { name?: string; contains?: string; isError?: boolean };
  /** Number of the answer since the last user message, from 1. */
  turn?: number;
  /** Model name; `*` matches any text. */
  model?: string;
  /** Tools that must be offered. */
  tools?: string[];
}

export interface ReplayAnswer {
  text?: string;
  reasoning?: string;
  toolCalls?: ReplayToolCall[];
  stopReason?: StopReason;
  usage?: Partial<TokenUsage>;
  error?: { status: number; type?: string; message?: string; retryAfter?: number };
  inBandError?: { type?: string; message?: string };
  delayMilliseconds?: number;
  cutAfterBytes?: number;
  chunkBytes?: number;
  chunkDelayMilliseconds?: number;
}

interface ReplayToolCall {
  id?: string;
  name: string;
  /** An object, or text that is sent unchanged, valid JSON or not. */
  arguments: Json;
}
