import { join } from 'node:path';
import type { Json } from '../lib/json.ts';
import { checkedTool } from '../tools/checks/checked-tool.ts';
import type { Tool, ToolDescriptor } from '../tools/contract.ts';
import type { ToolboxDeps } from './deps.ts';
import { FILE_FAILURES } from './file-access.ts';
import { assertListingAllowed, matchingFiles } from './file-list.ts';
import { optionalText, requiredText } from './input.ts';
import { resolveFolder } from './path-resolution.ts';
import { readText } from './text-files.ts';
import { walkDirectory } from './directory-walk.ts';

const MAX_MATCHES = 200;
const MAX_LINE_CHARACTERS = 300;
const MAX_SEARCHED_BYTES = 64 * 1_048_576;

const DESCRIPTOR: ToolDescriptor = {
  name: 'text_search',
  description:
    'Find the lines of text files that contain a given text exactly (no patterns in the text). Returns at most 200 {path, line, text}.',
  inputSchema: {
    type: 'object',
    properties: {
      text: { type: 'string', minLength: 1, maxLength: 1000 },
      path: { type: 'string', description: 'Folder to search; the workspace when absent', maxLength: 4096 },
      glob: {
        type: 'string',
        description: 'Which files, such as "**/*.csv"; all when absent',
        minLength: 1,
        maxLength: 256,
      },
    },
    required: ['text'],
    additionalProperties: false,
  },
  outputSchema: {
    type: 'object',
    properties: {
      matches: {
        type: 'array',
        items: {
          type: 'object',
          properties: { path: { type: 'string' }, line: { type: 'integer' }, text: { type: 'string' } },
          required: ['path', 'line', 'text'],
          additionalProperties: false,
        },
      },
      complete: { type: 'boolean' },
    },
    required: ['matches', 'complete'],
    additionalProperties: false,
  },
  category: 'file_system',
  action: 'code:read',
  sideEffects: false,
  locality: 'Local',
  examples: [{ text: 'timeout', path: 'src', glob: '**/*.ts' }],
  failures: FILE_FAILURES,
};

/** Finds lines that contain an exact text. */
export function textSearchTool(deps: ToolboxDeps): Tool {
  return checkedTool({
    descriptor: DESCRIPTOR,
    check: (input, caller) => assertListingAllowed(deps, caller, 'text_search', input),
    async call(input, context) {
      const path = optionalText(input, 'path') ?? '.';
      const glob = optionalText(input, 'glob') ?? '**';
      const roots = deps.roots ?? [deps.workspace];
      const { found, complete } = await walkDirectory(
        await resolveFolder(path, deps.workspace, roots, deps.protectedFolders),
        true,
        context.op.signal,
        deps.protectedFolders,
      );
      const files = matchingFiles(found, glob).map((file) => ({
        ...file,
        path: path === '.' ? file.path : join(path, file.path),
      }));
      const text = requiredText(input, 'text');
      const matches: Json[] = [];
      let budget = MAX_SEARCHED_BYTES;
      for (const file of files) {
        context.op.signal.throwIfAborted();
        budget -= file.bytes;
        if (budget < 0 || matches.length >= MAX_MATCHES) return { matches, complete: false };
        const content = await readText(file.path, deps.workspace, roots, deps.protectedFolders);
        if (content !== undefined) addMatches(matches, file.path, content, text);
      }
      return { matches, complete: complete && matches.length < MAX_MATCHES };
    },
  });
}

function addMatches(matches: Json[], path: string, content: string, text: string): void {
  if (!content.includes(text)) return;
  for (const [index, line] of content.split('\n').entries()) {
    if (matches.length >= MAX_MATCHES) return;
    if (line.includes(text)) matches.push({ path, line: index + 1, text: line.slice(0, MAX_LINE_CHARACTERS) });
  }
}
