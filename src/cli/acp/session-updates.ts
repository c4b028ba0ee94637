import type { SessionUpdate, ToolKind } from '@agentclientprotocol/sdk';
import type { AgentEvent } from '../../tools/events.ts';
import { WordStream } from '../transcript/word-stream.ts';

type EventOf<K extends AgentEvent['type']> = Extract<AgentEvent, { type: K }>;

/** Turns the events of one prompt into the updates of its ACP session. Text is sent in whole words, so that redaction finds whole secrets. */
export class SessionUpdates {
  readonly #words = new WordStream();
  /** Text of the running model call. */
  #turnText = '';
  /** Text since the last tool call. */
  #said = '';

  updatesOf(event: AgentEvent): SessionUpdate[] {
    switch (event.type) {
      case 'message':
        return event.delta ? this.#delta(event.text) : this.#message(event.text);
      case 'reasoning':
        return [{ sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text: event.text } }];
      case 'tool-call':
        return this.#call(event);
      case 'tool-result':
        return [resultOf(event)];
      case 'session-end':
        return this.#end(event.reply);
      default:
        return [];
    }
  }

  #delta(text: string): SessionUpdate[] {
    this.#turnText += text;
    return this.#text(this.#words.push(text));
  }

  /** The whole text of one model call. Its parts came before, unless the call was repeated or the model does not stream. */
  #message(text: string): SessionUpdate[] {
    const rest = this.#words.flush();
    const missing = this.#turnText === text ? '' : text;
    this.#turnText = '';
    this.#said += text;
    return [...this.#text(rest), ...this.#text(missing)];
  }

  #call({ id, tool, input }: EventOf<'tool-call'>): SessionUpdate[] {
    this.#said = '';
    const kind: ToolKind = KINDS[tool] ?? 'other';
    return [
      ...this.#text(this.#words.flush()),
      { sessionUpdate: 'tool_call', toolCallId: id, title: tool, kind, status: 'in_progress', rawInput: input },
    ];
  }

  /** A hook, a limit or a structured result can give a reply that the model did not say. */
  #end(reply: string): SessionUpdate[] {
    const rest = this.#words.flush();
    const isSaid = reply === '' || this.#said.trim() === reply.trim();
    this.#said = '';
    this.#turnText = '';
    return [...this.#text(rest), ...(isSaid ? [] : this.#text(reply))];
  }

  #text(text: string): SessionUpdate[] {
    return text === '' ? [] : [{ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } }];
  }
}

function resultOf({ id, ok, summary }: EventOf<'tool-result'>): SessionUpdate {
  return {
    sessionUpdate: 'tool_call_update',
    toolCallId: id,
    status: ok ? 'completed' : 'failed',
    content: [{ type: 'content', content: { type: 'text', text: summary } }],
  };
}

const KINDS: Readonly<Record<string, ToolKind>> = {
  file_read: 'read',
  file_list: 'read',
  file_write: 'edit',
  file_edit: 'edit',
  file_delete: 'delete',
  file_search: 'search',
  discover_capabilities: 'search',
};
