import type { ItemOrigin } from '../../models/item-origin.ts';

/** Tracks the sessions that contain untrusted content, and those with private data. */
export interface TaintTracker {
  /** `origin`: what brought the content, when that is known. */
  mark(session: string, origin?: ItemOrigin): void;
  has(session: string): boolean;
  /** Content of this origin has entered the session, which may be private data. */
  read(session: string, origin: ItemOrigin): void;
  markPrivate(session: string): void;
  hasPrivate(session: string): boolean;
  /** What is stored with items of the session. */
  marks(session: string): { tainted: boolean; private: boolean };
  clear(session: string): void;
}

/** `onTainted` is called when content of this origin is the first untrusted content of a session. */
export function createTaintTracker(
  onTainted: (origin: ItemOrigin, session: string) => void = () => undefined,
  isPrivate: (origin: ItemOrigin) => boolean = () => false,
): TaintTracker {
  const sessions = new Set<string>();
  const withPrivateData = new Set<string>();
  return {
    mark(session, origin) {
      if (sessions.has(session)) return;
      sessions.add(session);
      if (origin !== undefined) onTainted(origin, session);
    },
    has: (session) => sessions.has(session),
    read(session, origin) {
      if (isPrivate(origin)) withPrivateData.add(session);
    },
    markPrivate: (session) => void withPrivateData.add(session),
    hasPrivate: (session) => withPrivateData.has(session),
    marks: (session) => ({ tainted: sessions.has(session), private: withPrivateData.has(session) }),
    clear(session) {
      sessions.delete(session);
      withPrivateData.delete(session);
    },
  };
}

/** Whether an item of this origin has content of hosts. This includes errors, because their text may be untrusted too. */
export function isFromHost(origin: ItemOrigin): boolean {
  return origin === 'Web' || origin === 'Mcp';
}
