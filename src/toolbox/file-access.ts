import type { Json } from '../lib/json.ts';
import type { PolicyRequest } from '../policy/types.ts';
import type { CallerContext } from '../tools/contract.ts';
import { assertAllowed, type ToolboxDeps } from './deps.ts';
import { optionalText, requiredText } from './input.ts';

export type FileToolName = 'file_read' | 'file_write' | 'file_list' | 'text_search';

/** Throws TEMPER_POLICY_DENIED unless the caller may touch what this input names. Every file tool begins with it, wherever it then works. */
export function assertFileAllowed(
  deps: Pick<ToolboxDeps, 'decide'>,
  caller: CallerContext,
  tool: FileToolName,
  input: Json,
): void {
  const request = fileRequest(tool, input);
  if (request !== undefined) assertAllowed(deps, caller, request);
}

/** The workspace itself is what the tools are for; everything in it is asked for by its path. */
function fileRequest(tool: FileToolName, input: Json): PolicyRequest | undefined {
  if (tool === 'file_read') return { kind: 'File', path: requiredText(input, 'path'), access: 'read' };
  if (tool === 'file_write') return { kind: 'File', path: requiredText(input, 'path'), access: 'write' };
  const path = optionalText(input, 'path') ?? '.';
  return path === '.' ? undefined : { kind: 'File', path, access: 'read' };
}
