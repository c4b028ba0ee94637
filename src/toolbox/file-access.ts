import type { Json } from '../lib/json.ts';
import type { PolicyRequest } from '../policy/types.ts';
import type { CallerContext, ToolFailureCase } from '../tools/contract.ts';
import { assertAllowed, type ToolboxDeps } from './deps.ts';
import { optionalText, requiredText } from './input.ts';
import { writtenFile, writtenPath, writtenTarget } from './path-resolution.ts';

export type FileToolName = 'file_read' | 'file_write' | 'file_edit' | 'file_delete' | 'file_list' | 'text_search';

export const FILE_FAILURES: readonly ToolFailureCase[] = [
  { code: 'TEMPER_FILE_DENIED', when: 'the path is outside of the workspace, or Temper or Git keeps the file' },
  { code: 'TEMPER_FILE_FAILED', when: 'the path does not exist, has another type, or is too large' },
];

const WRITING: ReadonlySet<FileToolName> = new Set<FileToolName>(['file_write', 'file_edit', 'file_delete']);

/**
 * Throws TEMPER_POLICY_DENIED and TEMPER_FILE_DENIED unless the caller may access the path in the input. Every call of a file tool begins
 * with it, whether it works locally or remotely; the tool then follows links and looks again.
 */
export function assertFileAllowed(
  deps: Pick<ToolboxDeps, 'decide' | 'workspace' | 'roots' | 'protectedFolders'>,
  caller: CallerContext,
  tool: FileToolName,
  input: Json,
): void {
  const request = fileRequest(tool, input);
  if (request !== undefined) assertAllowed(deps, caller, request);
  // Its result shows lines of the file.
  if (request !== undefined && tool === 'file_edit') assertAllowed(deps, caller, { ...request, access: 'read' });
  if (request === undefined) return;
  const { workspace, roots = [workspace], protectedFolders } = deps;
  if (request.access === 'write') writtenTarget(request.path, workspace, protectedFolders);
  else if (tool === 'file_read') writtenFile(request.path, workspace, roots, protectedFolders);
  else writtenPath(request.path, workspace, roots, protectedFolders);
}

/** The policy request of a file tool. Listing the workspace itself needs no permission; any other path does. */
function fileRequest(tool: FileToolName, input: Json): Extract<PolicyRequest, { kind: 'File' }> | undefined {
  if (tool === 'file_read') return { kind: 'File', path: requiredText(input, 'path'), access: 'read' };
  if (WRITING.has(tool)) return { kind: 'File', path: requiredText(input, 'path'), access: 'write' };
  const path = optionalText(input, 'path') ?? '.';
  return path === '.' ? undefined : { kind: 'File', path, access: 'read' };
}
