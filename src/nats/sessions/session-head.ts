import { isJsonObject, type Json } from '../../lib/json.ts';

/** The current state of a session: the only value of a session that is overwritten. */
export interface SessionHead {
  /** RFC 3339. */
  openedAt: string;
  usedAt: string;
  items: number;
  /** Number of items before the last append. */
  before: number;
  /** Names of the last append and of the previous one; empty when there is none. */
  entry: string;
  previous: string;
  tainted: boolean;
  /** The session has private data. Absent in heads of releases that did not record it: unknown, and not so. */
  private?: boolean;
  /** RFC 3339: when a user closed the session, whose head then stays without a history. */
  closedAt?: string;
  /** Stored bytes of all appends. Undefined in heads of releases that did not count them. */
  bytes?: number | undefined;
}

/** Undefined for a value that is not a valid head. */
export function parseSessionHead(value: Json | undefined): SessionHead | undefined {
  if (!isJsonObject(value)) return undefined;
  const { openedAt, usedAt, items, before, entry, previous, tainted, bytes } = value;
  if (typeof openedAt !== 'string' || typeof usedAt !== 'string' || Number.isNaN(Date.parse(usedAt))) return undefined;
  if (typeof items !== 'number' || typeof before !== 'number' || typeof tainted !== 'boolean') return undefined;
  if (typeof entry !== 'string' || typeof previous !== 'string') return undefined;
  const { closedAt } = value;
  const isCounted = typeof bytes === 'number' && Number.isSafeInteger(bytes) && bytes >= 0;
  return {
    openedAt,
    usedAt,
    items,
    before,
    entry,
    previous,
    tainted,
    ...privateMark(value.private === true),
    ...(isCounted ? { bytes } : {}),
    ...(typeof closedAt === 'string' ? { closedAt } : {}),
  };
}

/** What has entered a session. */
export interface SessionMarks {
  tainted: boolean;
  hasPrivateData: boolean;
}

/** A mark that a session can get. */
type SessionMark = { tainted: true } | { private: true };

export function hasMark(head: SessionHead, mark: SessionMark): boolean {
  return 'tainted' in mark ? head.tainted : head.private === true;
}

/** The marks of a session, as its history has them. */
export function marksIn(head: SessionHead): { tainted: boolean; private?: true } {
  return { tainted: head.tainted, ...privateMark(head.private === true) };
}

/** Whether the entry brings a mark that the session does not have. */
export function addsMark(head: SessionHead, entry: { tainted: boolean; private?: boolean }): boolean {
  return (entry.tainted && !head.tainted) || (entry.private === true && head.private !== true);
}

/** The marks of the session after the entry. */
export function marksAfter(
  head: SessionHead,
  entry: { tainted: boolean; private?: boolean },
): Pick<SessionHead, 'tainted' | 'private'> {
  const isPrivate = head.private === true || entry.private === true;
  return { tainted: head.tainted || entry.tainted, ...privateMark(isPrivate) };
}

function privateMark(isPrivate: boolean): { private?: true } {
  return isPrivate ? { private: true } : {};
}
