import { join } from 'node:path';
import type { Json } from '../lib/json.ts';
import { compilePattern, matches } from '../policy/patterns/pattern.ts';
import { checkedTool } from '../tools/checks/checked-tool.ts';
import type { CallerContext, Tool, ToolDescriptor } from '../tools/contract.ts';
import type { ToolboxDeps } from './deps.ts';
import { assertFileAllowed, FILE_FAILURES } from './file-access.ts';
import { optionalText } from './input.ts';
import { resolveFolder } from './path-resolution.ts';
import { countLines, readText } from './text-files.ts';
import { type DirectoryEntry, walkDirectory } from './directory-walk.ts';

const MAX_ENTRIES = 500;
/** Line counts cover only the first files, up to this total size. */
const MAX_COUNTED_BYTES = 16 * 1_048_576;

const DESCRIPTOR: ToolDescriptor = {
  name: 'file_list',
  description:
    'List a folder: names, types, sizes in bytes, and line counts of text files. With a pattern such as "*.csv" or "**/*.json" list the matching files, at any depth when it holds "/".',
  inputSchema: {
    type: 'object',
    properties: {
      path: {
        type: 'string',
        description: 'Folder, relative to the workspace; the workspace when absent',
        maxLength: 4096,
      },
      glob: {
        type: 'string',
        description: '"*" stands for any characters but "/", "**" for any folders',
        minLength: 1,
        maxLength: 256,
      },
    },
    additionalProperties: false,
  },
  outputSchema: {
    type: 'object',
    properties: {
      path: { type: 'string' },
      entries: {
        type: 'array',
        items: {
          type: 'object',
          properties: {
            path: { type: 'string' },
            type: { type: 'string' },
            bytes: { type: 'integer' },
            lines: { type: 'integer' },
          },
          required: ['path', 'type', 'bytes'],
          additionalProperties: false,
        },
      },
      complete: { type: 'boolean' },
    },
    required: ['path', 'entries', 'complete'],
    additionalProperties: false,
  },
  category: 'file_system',
  action: 'code:read',
  sideEffects: false,
  locality: 'Local',
  examples: [{ path: 'reports', glob: '**/*.csv' }],
  failures: FILE_FAILURES,
};

/** Lists the entries of a folder, or the files below it that match a pattern. */
export function fileListTool(deps: ToolboxDeps): Tool {
  return checkedTool({
    descriptor: DESCRIPTOR,
    check: (input, caller) => assertListingAllowed(deps, caller, 'file_list', input),
    async call(input, context) {
      const path = optionalText(input, 'path') ?? '.';
      const glob = optionalText(input, 'glob');
      const roots = deps.roots ?? [deps.workspace];
      const { found, complete } = await walkDirectory(
        await resolveFolder(path, deps.workspace, roots, deps.protectedFolders),
        glob?.includes('/') ?? false,
        context.op.signal,
        deps.protectedFolders,
      );
      const selected = glob === undefined ? found : matchingFiles(found, glob);
      const entries = await described(deps, path, selected.slice(0, MAX_ENTRIES));
      return { path, entries, complete: complete && selected.length <= MAX_ENTRIES };
    },
  });
}

/** Refuses a folder that the caller may not read, and a malformed pattern. */
export function assertListingAllowed(
  deps: ToolboxDeps,
  caller: CallerContext,
  tool: 'file_list' | 'text_search',
  input: Json,
): void {
  assertFileAllowed(deps, caller, tool, input);
  const glob = optionalText(input, 'glob');
  if (glob !== undefined) compilePattern(glob, 'path');
}

/** The files that match the pattern; never folders or links. Throws TEMPER_PATTERN_INVALID. */
export function matchingFiles(found: DirectoryEntry[], glob: string): DirectoryEntry[] {
  const pattern = compilePattern(glob, 'path');
  return found.filter((entry) => entry.type === 'file' && matches(pattern, entry.path));
}

async function described(deps: ToolboxDeps, folder: string, found: DirectoryEntry[]): Promise<Json[]> {
  const roots = deps.roots ?? [deps.workspace];
  let budget = MAX_COUNTED_BYTES;
  const entries: Json[] = [];
  for (const entry of found) {
    const path = folder === '.' ? entry.path : join(folder, entry.path);
    const plain = { path, type: entry.type, bytes: entry.bytes };
    const counted = entry.type === 'file' && entry.bytes <= budget;
    const text = counted ? await readText(path, deps.workspace, roots, deps.protectedFolders) : undefined;
    if (text !== undefined) budget -= entry.bytes;
    entries.push(text === undefined ? plain : { ...plain, lines: countLines(text) });
  }
  return entries;
}
