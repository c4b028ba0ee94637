import { type HistoryEntry, parseHistoryEntry, toHistoryLine } from '../../agent/session/history-entry.ts';
import { sha256 } from '../../lib/canonical.ts';
import { member, parseJsonBytes } from '../../lib/json.ts';
import type { ModelMessage } from '../../models/port.ts';
import type { SessionHead } from './session-head.ts';

/** One append as it is stored: its bytes in parts, under a name derived from their hash. */
export interface SessionEntry {
  name: string;
  parts: Uint8Array[];
}

/** Size of one part. */
const PART_BYTES = 180 * 1_024;
const NAME_LENGTH = 32;

/** Equal appends after the same previous append have the same name. */
export function sessionEntry(entry: HistoryEntry, previous: string): SessionEntry {
  const bytes = Buffer.from(JSON.stringify({ entry: toHistoryLine(entry), previous }));
  const parts: Uint8Array[] = [];
  for (let start = 0; start < bytes.byteLength; start += PART_BYTES)
    parts.push(bytes.subarray(start, start + PART_BYTES));
  return { name: sha256(bytes).slice('sha256:'.length, 'sha256:'.length + NAME_LENGTH), parts };
}

/** Parts of all appends, by append name. May contain appends that never became part of the session. */
export type StoredParts = Map<string, Map<number, Uint8Array>>;

/** The items that the head refers to, oldest first; undefined when an append is missing, incomplete or at the wrong position. */
export function assembleHistory(head: SessionHead, stored: StoredParts): ModelMessage[] | undefined {
  const appends: ModelMessage[][] = [];
  let next = head.items;
  for (let name = head.entry; name !== ''; ) {
    const found = parseEntry(stored.get(name));
    if (found === undefined || found.entry.after + found.entry.items.length !== next) return undefined;
    appends.push(found.entry.items);
    next = found.entry.after;
    // Prevents an endless loop if an append names itself as its predecessor.
    stored.delete(name);
    name = found.previous;
  }
  return next === 0 ? appends.reverse().flat() : undefined;
}

function parseEntry(parts: Map<number, Uint8Array> | undefined): { entry: HistoryEntry; previous: string } | undefined {
  if (parts === undefined) return undefined;
  const inOrder = [...parts].sort(([a], [b]) => a - b).map(([, bytes]) => bytes);
  const json = parseJsonBytes(Buffer.concat(inOrder));
  const previous = member(json, 'previous');
  const entry = parseHistoryEntry(member(json, 'entry') ?? null);
  return entry === undefined || typeof previous !== 'string' ? undefined : { entry, previous };
}

/** The append is the last one of the session: its response was lost. */
export function isRepeated(
  { before, entry: last, previous }: Pick<SessionHead, 'before' | 'entry' | 'previous'>,
  entry: HistoryEntry,
): boolean {
  return before === entry.after && last.startsWith(sessionEntry(entry, previous).name);
}

/** The items as a load returns them. */
export function storedForm(items: readonly ModelMessage[]): unknown {
  return JSON.parse(JSON.stringify(items));
}
