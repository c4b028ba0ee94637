import { sha256 } from '../../lib/canonical.ts';
import { isJsonObject, parseUntrustedJson, type Json } from '../../lib/json.ts';
import type { ModelMessage } from '../port.ts';

/** A request of any wire format, in the form that rules are matched against. */
export interface ReplayConversation {
  model: string;
  system: string;
  messages: ModelMessage[];
  /** Names of the tools offered. */
  tools: string[];
  stream: boolean;
  maxOutputTokens?: number;
}

export type ReplayToolMessage = Extract<ModelMessage, { role: 'tool' }>;
export type ReplayUserMessage = Extract<ModelMessage, { role: 'user' }>;

/** The tool results at the end of the conversation, in the order of their calls. */
export function closingToolResults(conversation: ReplayConversation): ReplayToolMessage[] {
  const { messages } = conversation;
  const before = messages.findLastIndex((message) => message.role !== 'tool');
  return messages.slice(before + 1) as ReplayToolMessage[];
}

export function toolResults(conversation: ReplayConversation): ReplayToolMessage[] {
  return conversation.messages.filter((message) => message.role === 'tool');
}

export function userMessages(conversation: ReplayConversation): ReplayUserMessage[] {
  return conversation.messages.filter((message) => message.role === 'user');
}

/** Answers given since the last user message, plus one. */
export function turnNumber(conversation: ReplayConversation): number {
  const { messages } = conversation;
  const start = messages.findLastIndex((message) => message.role === 'user');
  return messages.slice(start + 1).filter((message) => message.role === 'assistant').length + 1;
}

/** Identifies a conversation by its system prompt and its first user message. */
export function conversationKey(conversation: ReplayConversation): string {
  return sha256(JSON.stringify([conversation.system, userMessages(conversation)[0]?.text ?? '']));
}

/** The JSON value of a tool result, or its text when it is not JSON. */
export function resultValue(message: ReplayToolMessage): Json {
  try {
    return parseUntrustedJson(message.text);
  } catch (error) {
    if (error instanceof SyntaxError) return message.text;
    throw error;
  }
}

/** Fills in the tool names that a wire format leaves out of its tool results. */
export function withToolNames(messages: ModelMessage[]): ModelMessage[] {
  const names = new Map<string, string>();
  return messages.map((message) => {
    if (message.role === 'assistant') for (const call of message.toolCalls) names.set(call.id, call.name);
    if (message.role !== 'tool' || message.name !== '') return message;
    return { ...message, name: names.get(message.toolCallId) ?? '' };
  });
}

/** Text of a message's content: text itself, or a list of parts that have a `text`. */
export function contentText(content: Json | undefined): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map((part) => (isJsonObject(part) && typeof part['text'] === 'string' ? part['text'] : '')).join('');
}
