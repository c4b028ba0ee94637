import type { ToolDescriptor } from '../tools/contract.ts';

/** Which sessions hold content that a stranger wrote. */
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

/** Do results of this tool come from outside? Errors count too: their text may be the stranger's. */
export function bringsUntrustedContent(tool: Pick<ToolDescriptor, 'category' | 'action'>): boolean {
  return tool.category === 'web' || tool.category === 'mcp' || tool.action === 'comms:external';
}
