import type { Json } from '../lib/json.ts';
import type { PolicyRequest } from '../policy/types.ts';
import type { CallerContext } from '../tools/contract.ts';
import { assertAllowed, type ToolboxDeps } from './deps.ts';
import { optionalText, requiredText } from './input.ts';

export type FileToolName = 'file_read' | 'file_write' | 'file_list' | 'text_search';

/** Throws TEMPER_POLICY_DENIED unless the caller may access the path in the input. Every file tool calls this first, whether it works locally or remotely. */
export function assertFileAllowed(
  deps: Pick<ToolboxDeps, 'decide'>,
  caller: CallerContext,
  tool: FileToolName,
  input: Json,
): void {
  const request = fileRequest(tool, input);
  if (request !== undefined) assertAllowed(deps, caller, request);
}

/** The policy request of a call of a file tool. Listing the workspace itself needs no permission; any other path does. */
export function fileRequest(tool: FileToolName, input: Json): Extract<PolicyRequest, { kind: 'File' }> | undefined {
  if (tool === 'file_read') return { kind: 'File', path: requiredText(input, 'path'), access: 'read' };
  if (tool === 'file_write') return { kind: 'File', path: requiredText(input, 'path'), access: 'write' };
  const path = optionalText(input, 'path') ?? '.';
  return path === '.' ? undefined : { kind: 'File', path, access: 'read' };
}
