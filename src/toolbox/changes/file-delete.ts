import { lstat, readdir, rm, rmdir, unlink } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { hasErrno, TemperError } from '../../lib/errors.ts';
import { type Json, member } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import { checkedTool } from '../../tools/checks/checked-tool.ts';
import type { Tool, ToolDescriptor } from '../../tools/contract.ts';
import { protectedFolderCheck } from '../../tools/host/host-files.ts';
import type { ToolboxDeps } from '../deps.ts';
import { assertFileAllowed, FILE_FAILURES } from '../file-access.ts';
import { optionalNumber, requiredText } from '../input.ts';
import { isWithin, resolveExistingEntry, writtenTarget } from '../path-resolution.ts';

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = 10_000;

const DESCRIPTOR: ToolDescriptor = {
  name: 'file_delete',
  description:
    'Delete a file, a link or an empty folder below the workspace; a folder with its content only with recursive. dryRun only counts. Returns {path, entries, deleted}.',
  inputSchema: {
    type: 'object',
    properties: {
      path: { type: 'string', description: 'Relative to the workspace', minLength: 1, maxLength: 4096 },
      recursive: { type: 'boolean', description: 'Delete a folder with everything in it' },
      limit: {
        type: 'integer',
        minimum: 1,
        maximum: MAX_LIMIT,
        description: `Delete nothing when there are more entries; ${DEFAULT_LIMIT} when absent`,
      },
      dryRun: { type: 'boolean', description: 'Count the entries and delete nothing' },
    },
    required: ['path'],
    additionalProperties: false,
  },
  outputSchema: {
    type: 'object',
    properties: { path: { type: 'string' }, entries: { type: 'integer' }, deleted: { type: 'boolean' } },
    required: ['path', 'entries', 'deleted'],
    additionalProperties: false,
  },
  category: 'file_system',
  action: 'code:delete',
  sideEffects: true,
  locality: 'Local',
  examples: [{ path: 'build', recursive: true, limit: 500, dryRun: true }],
  failures: FILE_FAILURES,
};

/** Deletes below the workspace. It follows no link: a link is deleted itself. */
export function fileDeleteTool(deps: ToolboxDeps): Tool {
  return checkedTool({
    descriptor: DESCRIPTOR,
    check(input, caller) {
      assertFileAllowed(deps, caller, 'file_delete', input);
      if (member(input, 'recursive') === true) refuseWrittenAbove(requiredText(input, 'path'), deps);
    },
    async call(input, context) {
      const path = requiredText(input, 'path');
      const { folder, name } = await resolveExistingEntry(path, deps.workspace, deps.protectedFolders);
      const target = join(folder, name);
      const isFolder = (await entryAt(target, path)).isDirectory();
      const recursive = member(input, 'recursive') === true;
      if (isFolder && recursive) await refuseProtected(target, path, deps.protectedFolders);
      const limit = optionalNumber(input, 'limit') ?? DEFAULT_LIMIT;
      const entries = isFolder ? await countEntries(target, recursive ? limit : 1, context.op.signal) : 1;
      assertDeletable(path, { entries, limit, isEmpty: entries === 1, recursive });
      if (member(input, 'dryRun') === true) return { path, entries, deleted: false };
      await remove(target, path, { isFolder, recursive });
      return { path, entries, deleted: true } satisfies Json;
    },
  });
}

function assertDeletable(
  path: string,
  { entries, limit, isEmpty, recursive }: { entries: number; limit: number; isEmpty: boolean; recursive: boolean },
): void {
  if (!isEmpty && !recursive) throw failed(path, 'is a folder that is not empty; set recursive to delete its content');
  if (entries <= limit) return;
  throw failed(path, `has more than ${limit} entries; nothing was deleted. Name a smaller folder or a higher limit`);
}

function entryAt(target: string, path: string): Promise<{ isDirectory(): boolean }> {
  return lstat(target).catch((error: unknown) => {
    if (hasErrno(error, 'ENOENT')) throw failed(path, 'does not exist');
    throw error;
  });
}

/** A protected folder below the target would be deleted with it. */
async function refuseProtected(target: string, path: string, closed: readonly string[] = []): Promise<void> {
  const checks = await Promise.all(
    closed.map(async (folder) => ({ folder, covers: await protectedFolderCheck([folder]) })),
  );
  const inside = checks.some(({ folder, covers }) => covers(target) || isWithin(target, folder));
  if (inside) throw containsProtected(path);
}

/** The same for the path as it is written, before any link is followed. */
function refuseWrittenAbove(path: string, { workspace, protectedFolders = [] }: ToolboxDeps): void {
  const written = writtenTarget(path, workspace);
  if (protectedFolders.some((folder) => isWithin(written, resolve(folder)))) throw containsProtected(path);
}

function containsProtected(path: string): TemperError {
  return new TemperError(
    'TEMPER_FILE_DENIED',
    `"${printable(path, 200)}" contains files of Temper itself; delete its other entries one by one`,
  );
}

/** The folder and everything below it; stops one above the limit. Never follows a link. */
async function countEntries(folder: string, limit: number, signal: AbortSignal): Promise<number> {
  let entries = 1;
  const pending = [folder];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    signal.throwIfAborted();
    for (const entry of await readdir(next, { withFileTypes: true })) {
      entries += 1;
      if (entries > limit) return entries;
      if (entry.isDirectory()) pending.push(join(next, entry.name));
    }
  }
  return entries;
}

async function remove(
  target: string,
  path: string,
  { isFolder, recursive }: { isFolder: boolean; recursive: boolean },
): Promise<void> {
  try {
    if (!isFolder) await unlink(target);
    else if (recursive) await rm(target, { recursive: true });
    else await rmdir(target);
  } catch (cause) {
    const message = `"${printable(path, 200)}" cannot be deleted`;
    throw new TemperError('TEMPER_FILE_FAILED', message, { cause });
  }
}

function failed(path: string, problem: string): TemperError {
  return new TemperError('TEMPER_FILE_FAILED', `"${printable(path, 200)}" ${problem}`);
}
