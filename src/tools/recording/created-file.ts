import { isCount, type Json, member } from '../../lib/json.ts';
import type { ToolDescriptor } from '../contract.ts';
import type { AgentEvent } from '../events.ts';

/** The one built-in tool that creates files of a workspace. */
const FILE_WRITE = 'file_write';

/** The event of a file that this result of a tool says it created. */
export function createdFile(
  { name, forged }: Pick<ToolDescriptor, 'name' | 'forged'>,
  output: Json,
): Extract<AgentEvent, { type: 'file-created' }> | undefined {
  if (name !== FILE_WRITE || forged !== undefined || member(output, 'created') !== true) return undefined;
  const [path, bytes] = [member(output, 'path'), member(output, 'bytes')];
  return typeof path === 'string' && isCount(bytes) ? { type: 'file-created', path, bytes } : undefined;
}
