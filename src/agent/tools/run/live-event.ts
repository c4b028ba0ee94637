import type { JsonObject } from '../../../lib/json.ts';
import { printable } from '../../../lib/printable.ts';
import type { AgentEvent } from '../../../tools/events.ts';
import { truncate } from '../../history/tool-result-text.ts';

/** Within the limit of the data of an event, also in the worst case of UTF-8. */
const MAX_TEXT = 2_000;
const MAX_NAME = 80;

/**
 * What other agents see of an event of a run, with its place among the contexts. Arguments and results of tools are left out: who listens
 * need not have the right to them. Undefined for events that only the session has. Pure.
 */
export function liveEvent(event: AgentEvent): JsonObject | undefined {
  const { contextId = '', ancestorIds = [] } = event;
  const members = membersOf(event);
  return members === undefined ? undefined : { ...members, contextId, ancestorIds: [...ancestorIds] };
}

function membersOf(event: AgentEvent): JsonObject | undefined {
  switch (event.type) {
    case 'agent-start':
      return { type: event.type, name: event.name, model: event.model };
    case 'turn-start':
      return { type: event.type, turn: event.turn };
    case 'turn-end':
      return { type: event.type, turn: event.turn, inputTokens: event.inputTokens, outputTokens: event.outputTokens };
    case 'tool-call':
      return { type: event.type, id: printable(event.id, MAX_NAME), tool: printable(event.tool, MAX_NAME) };
    case 'tool-result': {
      const call = { id: printable(event.id, MAX_NAME), tool: printable(event.tool, MAX_NAME) };
      return event.ok ? { type: event.type, ...call } : { type: 'tool-error', ...call, ...codeOf(event) };
    }
    case 'agent-message':
      return { type: event.type, text: truncate(event.text, MAX_TEXT) };
    case 'agent-error':
      return { type: event.type, ...codeOf(event), attempt: event.attempt };
    case 'agent-complete': {
      const { type, ok, turns, toolCalls, inputTokens, outputTokens } = event;
      return { type, ok, ...codeOf(event), turns, toolCalls, inputTokens, outputTokens };
    }
    default:
      return undefined;
  }
}

function codeOf({ code }: { readonly code?: string }): JsonObject {
  return code === undefined ? {} : { code };
}
