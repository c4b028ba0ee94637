import { type HistoryEntry, historyEntry, historyLine } from '../agent/session-entry.ts';
import { sha256 } from '../lib/canonical.ts';
import { member } from '../lib/json.ts';
import type { ModelMessage } from '../models/port.ts';
import type { SessionHead } from './session-head.ts';
import { jsonOf } from './stored.ts';

/** One append, as it is stored: its bytes in parts, under a name made of them. */
export interface SessionEntry {
  name: string;
  parts: Uint8Array[];
}

/** Bytes of a part. */
const PART = 180 * 1_024;
const NAME_LENGTH = 32;

/** The same append after the same one has the same name. */
export function sessionEntry(entry: HistoryEntry, previous: string): SessionEntry {
  const bytes = Buffer.from(JSON.stringify({ entry: historyLine(entry), previous }));
  const parts: Uint8Array[] = [];
  for (let start = 0; start < bytes.byteLength; start += PART) parts.push(bytes.subarray(start, start + PART));
  return { name: sha256(bytes).slice('sha256:'.length, 'sha256:'.length + NAME_LENGTH), parts };
}

/** Parts of all appends, by the append's name. Appends that never became part of the session may be among them. */
export type StoredParts = Map<string, Map<number, Uint8Array>>;

/** The items that the head stands for, oldest first; nothing when an append is missing, incomplete or out of place. */
export function historyFrom(head: SessionHead, stored: StoredParts): ModelMessage[] | undefined {
  const appends: ModelMessage[][] = [];
  let next = head.items;
  for (let name = head.entry; name !== ''; ) {
    const found = readEntry(stored.get(name));
    if (found === undefined || found.entry.after + found.entry.items.length !== next) return undefined;
    appends.push(found.entry.items);
    next = found.entry.after;
    // An append that names itself would go round for ever.
    stored.delete(name);
    name = found.previous;
  }
  return next === 0 ? appends.reverse().flat() : undefined;
}

function readEntry(parts: Map<number, Uint8Array> | undefined): { entry: HistoryEntry; previous: string } | undefined {
  if (parts === undefined) return undefined;
  const inOrder = [...parts].sort(([a], [b]) => a - b).map(([, bytes]) => bytes);
  const json = jsonOf(Buffer.concat(inOrder));
  const previous = member(json, 'previous');
  const entry = historyEntry(member(json, 'entry') ?? null);
  return entry === undefined || typeof previous !== 'string' ? undefined : { entry, previous };
}
