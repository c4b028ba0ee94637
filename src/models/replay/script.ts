import type { Json } from '../../lib/json.ts';
import type { StopReason, TokenUsage } from '../port.ts';

/** What a scripted model answers, and when. The reference page describes every member. */
export interface ReplayScript {
  rules: ReplayRule[];
}

export interface ReplayRule {
  /** Shown in errors; a rule without one is called by its number. */
  name?: string;
  when?: ReplayCondition;
  /** How often the rule may answer in one conversation. Absent: always. */
  times?: number;
  answer: ReplayAnswer;
}

/** All members given must hold. Texts are compared by `contains`, upper and lower case being different. */
export interface ReplayCondition {
  system?: string;
  lastUser?: string;
  /** Role of the last message. */
  last?: 'user' | 'tool';
  /** One of the tool results the conversation ends with. */
  lastTool?: { name?: string; contains?: string; isError?: boolean };
  /** The how-many-eth answer since the last user message, from 1. */
  turn?: number;
  /** Model name, `*` standing for any text. */
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
  /** An object, or text that is sent as it is, well-formed or not. */
  arguments: Json;
}
