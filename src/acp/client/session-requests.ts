import { RequestError, type ToolKind } from '@agentclientprotocol/sdk';
import { sep } from 'node:path';
import { isCount, type Json, type JsonObject, member, parseUntrustedJson } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';

/** The path of a file request in the workspace of the agent. `folder` is the `cwd` of its session. */
export function workspacePath(path: string, folder: string): string {
  if (path === folder) return '.';
  if (path.startsWith(`${folder}${sep}`)) return path.slice(folder.length + 1);
  throw RequestError.invalidParams(undefined, `${printable(path, 200)} is not in the working folder of the session`);
}

/** The arguments of `file_read` for a request of the client's file system. */
export function readArguments(path: string, line?: number | null, limit?: number | null): JsonObject {
  return {
    path,
    ...(isCount(line ?? undefined) && line !== 0 ? { firstLine: line as number } : {}),
    ...(isCount(limit ?? undefined) && limit !== 0 ? { lineCount: limit as number } : {}),
  };
}

/** The text of the file in a result of `file_read`. */
export function readText(result: string): string {
  try {
    const text = member(parseUntrustedJson(result) as Json, 'text');
    if (typeof text === 'string') return text;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw RequestError.internalError(undefined, 'the file is too large for one result; read it in ranges of lines');
}

/** The tools of Temper that do what an agent asks permission for. No tool runs programs or fetches pages for it. */
const TOOLS_OF_KIND: Partial<Record<ToolKind, readonly string[]>> = {
  read: ['file_read'],
  search: ['file_search', 'file_list'],
  edit: ['file_write', 'file_edit'],
  delete: ['file_delete', 'file_write'],
  move: ['file_write'],
};

/**
 * Whether the agent may go on after its question. The answer grants nothing: each call is decided when it is made. It only keeps the agent
 * from waiting for a user who is not there, or from going on with what it cannot do.
 */
export function isPermitted(
  question: { kind?: ToolKind | null | undefined; title?: string | null | undefined; name?: string | null | undefined },
  offered: readonly string[],
): boolean {
  const ofKind = TOOLS_OF_KIND[question.kind ?? 'other'] ?? [];
  if (ofKind.some((name) => offered.includes(name))) return true;
  const words = new Set(`${question.name ?? ''} ${question.title ?? ''}`.slice(0, 1_000).split(/[^A-Za-z0-9_-]+|__/));
  return offered.some((name) => words.has(name));
}
