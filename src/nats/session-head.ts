import { isJsonObject, type Json } from '../lib/json.ts';

/** What a session is right now: the one value that moves. */
export interface SessionHead {
  /** RFC 3339. */
  openedAt: string;
  usedAt: string;
  items: number;
  /** How many items stood before the last append. */
  before: number;
  /** Name of the last append, and of the one before it; empty for none. */
  entry: string;
  previous: string;
  tainted: boolean;
}

/** Nothing when the value is no head. */
export function headFrom(value: Json | undefined): SessionHead | undefined {
  if (!isJsonObject(value)) return undefined;
  const { openedAt, usedAt, items, before, entry, previous, tainted } = value;
  if (typeof openedAt !== 'string' || typeof usedAt !== 'string' || Number.isNaN(Date.parse(usedAt))) return undefined;
  if (typeof items !== 'number' || typeof before !== 'number' || typeof tainted !== 'boolean') return undefined;
  if (typeof entry !== 'string' || typeof previous !== 'string') return undefined;
  return { openedAt, usedAt, items, before, entry, previous, tainted };
}
