import { TemperError } from '../lib/errors.ts';
import { printable } from '../lib/printable.ts';
import type { Json } from '../lib/json.ts';
import { checkedTool } from '../tools/checks/checked-tool.ts';
import type { Tool, ToolDescriptor } from '../tools/contract.ts';
import { readFileBelow } from '../tools/host/host-files.ts';
import type { ToolboxDeps } from './deps.ts';
import { assertFileAllowed, FILE_FAILURES } from './file-access.ts';
import { optionalNumber, requiredText } from './input.ts';
import { nextLineStart, countLines } from './text-files.ts';

const DESCRIPTOR: ToolDescriptor = {
  name: 'file_read',
  description:
    'Read a UTF-8 text file of at most 1 MiB, the whole file or a range of lines. Returns {path, text, bytes, lines}: bytes and lines are those of the whole file.',
  inputSchema: {
    type: 'object',
    properties: {
      path: { type: 'string', description: 'Relative to the workspace', minLength: 1, maxLength: 4096 },
      firstLine: { type: 'integer', minimum: 1, description: 'First line to return; 1 when absent' },
      lineCount: { type: 'integer', minimum: 1, description: 'How many lines; all when absent' },
    },
    required: ['path'],
    additionalProperties: false,
  },
  outputSchema: {
    type: 'object',
    properties: {
      path: { type: 'string' },
      text: { type: 'string' },
      bytes: { type: 'integer' },
      lines: { type: 'integer' },
    },
    required: ['path', 'text', 'bytes', 'lines'],
    additionalProperties: false,
  },
  category: 'file_system',
  action: 'code:read',
  sideEffects: false,
  locality: 'Local',
  failures: FILE_FAILURES,
};

/** Reads a text file below the roots: the whole file or a range of its lines. */
export function fileReadTool(deps: ToolboxDeps): Tool {
  return checkedTool({
    descriptor: DESCRIPTOR,
    check: (input, caller) => assertFileAllowed(deps, caller, 'file_read', input),
    async call(input) {
      const path = requiredText(input, 'path');
      const roots = deps.roots ?? [deps.workspace];
      const whole = await readFileBelow(path, deps.workspace, roots, () => undefined, deps.protectedFolders);
      if (whole.includes('\0'))
        throw new TemperError('TEMPER_FILE_FAILED', `"${printable(path, 200)}" is not a text file`);
      const bytes = Buffer.byteLength(whole);
      return { path, text: range(whole, input), bytes, lines: countLines(whole) };
    },
  });
}

function range(whole: string, input: Json): string {
  const first = optionalNumber(input, 'firstLine') ?? 1;
  const count = optionalNumber(input, 'lineCount');
  if (first === 1 && count === undefined) return whole;
  let start = 0;
  for (let line = 1; line < first && start < whole.length; line += 1) start = nextLineStart(whole, start);
  if (count === undefined) return whole.slice(start);
  let end = start;
  for (let line = 0; line < count && end < whole.length; line += 1) end = nextLineStart(whole, end);
  return whole.slice(start, end);
}
