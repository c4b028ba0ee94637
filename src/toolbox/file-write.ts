import { randomBytes } from 'node:crypto';
import { lstat, open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { hasErrno, TemperError } from '../lib/errors.ts';
import { printable } from '../lib/printable.ts';
import type { Tool } from '../tools/contract.ts';
import type { ToolboxDeps } from './deps.ts';
import { assertFileAllowed } from './file-access.ts';
import { requiredText } from './input.ts';
import { resolveWriteTarget } from './path-resolution.ts';

const MAX_CHARACTERS = 1_048_576;

/** Writes a text file below the workspace atomically. */
export function fileWriteTool(deps: ToolboxDeps): Tool {
  return {
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
    },
    async call(input, context) {
      const path = requiredText(input, 'path');
      assertFileAllowed(deps, context, 'file_write', input);
      const { folder, name } = await resolveWriteTarget(path, deps.workspace, deps.protectedFolders);
      const content = requiredText(input, 'text');
      const created = !(await existsAsFile(join(folder, name), path));
      await replace(folder, name, content);
      return { path, bytes: Buffer.byteLength(content), created };
    },
  };
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

/** Writes a temporary file and renames it, so that a reader sees either the old text or the new one, and a crash leaves the old one. */
async function replace(folder: string, name: string, content: string): Promise<void> {
  const temporary = join(folder, `.${randomBytes(8).toString('hex')}.tmp`);
  try {
    const handle = await open(temporary, 'wx', 0o600);
    try {
      await handle.writeFile(content);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(temporary, join(folder, name));
  } catch (cause) {
    await rm(temporary, { force: true });
    throw new TemperError('TEMPER_FILE_FAILED', `"${printable(name, 200)}" cannot be written`, { cause });
  }
}
