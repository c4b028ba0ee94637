import type { ItemOrigin } from '../../models/item-origin.ts';

/** Tracks the sessions that contain untrusted content. */
export interface TaintTracker {
  /** `origin`: what brought the content, when that is known. */
  mark(session: string, origin?: ItemOrigin): void;
  has(session: string): boolean;
  clear(session: string): void;
}

/** `onTainted` is called when content of this origin is the first untrusted content of a session. */
export function createTaintTracker(onTainted: (origin: ItemOrigin) => void = () => undefined): TaintTracker {
  const sessions = new Set<string>();
  return {
    mark(session, origin) {
      if (sessions.has(session)) return;
      sessions.add(session);
      if (origin !== undefined) onTainted(origin);
    },
    has: (session) => sessions.has(session),
    clear: (session) => void sessions.delete(session),
  };
}

/** Whether an item of this origin has content of hosts. This includes errors, because their text may be untrusted too. */
export function isFromHost(origin: ItemOrigin): boolean {
  return origin === 'Web' || origin === 'Mcp';
}
