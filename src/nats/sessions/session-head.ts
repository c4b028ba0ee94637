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
    ...(isCounted ? { bytes } : {}),
    ...(typeof closedAt === 'string' ? { closedAt } : {}),
  };
}
