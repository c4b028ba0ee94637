import { type Json, parseUntrustedJson } from '../../../lib/json.ts';
import { TemperError } from '../../../lib/errors.ts';
import type { ModelMessage } from '../../../models/port.ts';
import type { SessionStore } from '../../ports.ts';
import { parseHistoryEntry, toHistoryLine } from '../../session/history-entry.ts';
import type { HistoryWriter } from '../../session/history-writer.ts';
import { RUN_TOOL_NAME } from './run-descriptor.ts';

type ToolItem = Extract<ModelMessage, { role: 'tool' }>;

/**
 * The history of one run, inside the session of the message: its items are journal entries of the session, which no model sees as they are.
 * So they are stored, limited and deleted with the session, and an interrupted run resumes.
 */
export function runHistory(writer: HistoryWriter, id: string): SessionStore {
  const entries = (): ModelMessage[] =>
    writer.items.flatMap((item) => (isEntryOf(item, id) ? (itemsIn(item.text) ?? corrupt()) : []));
  return {
    async load() {
      const items = entries();
      return { seq: items.length, items, tainted: false };
    },
    async append(_session, after, items, { tainted = false, private: isPrivate = false, deferrable = false } = {}) {
      const added = items.map((item, index) => entryOf(id, item, { after: after + index, tainted }));
      await writer.write(added, { tainted, private: isPrivate, deferrable });
      return after + items.length;
    },
    close: async () => undefined,
  };
}

/** One entry per item, so that each keeps the origin of its item. */
function entryOf(id: string, item: ModelMessage, { after, tainted }: { after: number; tainted: boolean }): ToolItem {
  const text = JSON.stringify(toHistoryLine({ after, items: [item], tainted }));
  const origin = item.role === 'assistant' ? 'Engine' : (item.origin ?? 'Unknown');
  return { role: 'tool', toolCallId: id, name: RUN_TOOL_NAME, text, isError: false, journal: true, origin };
}

function isEntryOf(item: ModelMessage, id: string): item is ToolItem {
  return item.role === 'tool' && item.journal === true && item.name === RUN_TOOL_NAME && item.toolCallId === id;
}

function itemsIn(text: string): ModelMessage[] | undefined {
  let line: Json;
  try {
    line = parseUntrustedJson(text);
  } catch {
    return undefined;
  }
  return parseHistoryEntry(line)?.items;
}

function corrupt(): never {
  throw new TemperError('TEMPER_STATE_CORRUPT', 'an entry of a run of agent_run cannot be read; close the session');
}
