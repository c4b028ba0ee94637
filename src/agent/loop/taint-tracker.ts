import type { ToolDescriptor } from '../../tools/contract.ts';

/** Tracks the sessions that contain untrusted content. */
export interface TaintTracker {
  mark(session: string): void;
  has(session: string): boolean;
  clear(session: string): void;
}

export function createTaintTracker(): TaintTracker {
  const sessions = new Set<string>();
  return {
    mark: (session) => void sessions.add(session),
    has: (session) => sessions.has(session),
    clear: (session) => void sessions.delete(session),
  };
}

/** Whether results of this tool contain untrusted content. This includes errors, because their text may be untrusted too. */
export function bringsUntrustedContent(tool: Pick<ToolDescriptor, 'category' | 'action'>): boolean {
  return tool.category === 'web' || tool.category === 'mcp' || tool.action === 'comms:external';
}
