import type { ToolDescriptor } from '../tools/contract.ts';

/** Tracks the sessions that contain untrusted content. */
export interface TaintMarks {
  mark(session: string): void;
  has(session: string): boolean;
  forget(session: string): void;
}

export function createTaintMarks(): TaintMarks {
  const sessions = new Set<string>();
  return {
    mark: (session) => void sessions.add(session),
    has: (session) => sessions.has(session),
    forget: (session) => void sessions.delete(session),
  };
}

/** Whether results of this tool contain untrusted content. This includes errors, because their text may be untrusted too. */
export function bringsUntrustedContent(tool: Pick<ToolDescriptor, 'category' | 'action'>): boolean {
  return tool.category === 'web' || tool.category === 'mcp' || tool.action === 'comms:external';
}
