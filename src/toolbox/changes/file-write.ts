import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import { hasErrno, TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { checkedTool } from '../../tools/checks/checked-tool.ts';
import type { Tool } from '../../tools/contract.ts';
import type { ToolboxDeps } from '../deps.ts';
import { assertFileAllowed, FILE_FAILURES } from '../file-access.ts';
import { requiredText } from '../input.ts';
import { resolveWriteTarget } from '../path-resolution.ts';
import { replaceFile } from './replace-file.ts';

const MAX_CHARACTERS = 1_048_576;

/** Writes a text file below the workspace atomically. */
export function fileWriteTool(deps: ToolboxDeps): Tool {
  return checkedTool({
    descriptor: {
      name: 'file_write',
      description:
        'Write a UTF-8 text file below the workspace, replacing its content. Missing folders are created. Returns {path, bytes, created}.',
      inputSchema: {
        type: 'object',
        properties: {
          path: { type: 'string', description: 'Relative to the workspace', minLength: 1, maxLength: 4096 },
          text: { type: 'string', maxLength: MAX_CHARACTERS },
        },
        required: ['path', 'text'],
        additionalProperties: false,
      },
      outputSchema: {
        type: 'object',
        properties: { path: { type: 'string' }, bytes: { type: 'integer' }, created: { type: 'boolean' } },
        required: ['path', 'bytes', 'created'],
        additionalProperties: false,
      },
      category: 'file_system',
      action: 'code:write',
      sideEffects: true,
      locality: 'Local',
      failures: FILE_FAILURES,
    },
    check: (input, caller) => assertFileAllowed(deps, caller, 'file_write', input),
    async call(input) {
      const path = requiredText(input, 'path');
      const { folder, name } = await resolveWriteTarget(path, deps.workspace, deps.protectedFolders);
      const content = requiredText(input, 'text');
      const created = !(await existsAsFile(join(folder, name), path));
      await replaceFile(folder, name, content);
      return { path, bytes: Buffer.byteLength(content), created };
    },
  });
}

async function existsAsFile(target: string, path: string): Promise<boolean> {
  try {
    if ((await lstat(target)).isFile()) return true;
  } catch (error) {
    if (hasErrno(error, 'ENOENT')) return false;
    throw error;
  }
  throw new TemperError(
    'TEMPER_FILE_DENIED',
    `"${printable(path, 200)}" is a folder, a link or a device; only regular files are replaced`,
  );
}
