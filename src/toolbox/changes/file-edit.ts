import { lstat } from 'node:fs/promises';
import { join } from 'node:path';
import { SerialQueue } from '../../lib/async/serial-queue.ts';
import { hasErrno, TemperError } from '../../lib/errors.ts';
import { type Json, member } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import { checkedTool } from '../../tools/checks/checked-tool.ts';
import type { Tool, ToolDescriptor } from '../../tools/contract.ts';
import { readFileBelow } from '../../tools/host/host-files.ts';
import type { ToolboxDeps } from '../deps.ts';
import { assertFileAllowed, FILE_FAILURES } from '../file-access.ts';
import { optionalNumber, requiredText } from '../input.ts';
import { resolveExistingEntry } from '../path-resolution.ts';
import { applyEdits, type Edit } from './apply-edits.ts';
import { replaceFile } from './replace-file.ts';
import { unifiedDiff } from './unified-diff.ts';

const MAX_CHARACTERS = 1_048_576;
const MAX_EDITS = 100;
const MAX_DIFF = 8_000;

const DESCRIPTOR: ToolDescriptor = {
  name: 'file_edit',
  description:
    'Change parts of a UTF-8 text file below the workspace: all edits, one after the other, or none. An edit replaces oldText, which must occur once (or each occurrence with all), or the lines from firstLine on, which must be expectedText. Returns {path, bytes, replaced, diff}.',
  inputSchema: {
    type: 'object',
    properties: {
      path: { type: 'string', description: 'Relative to the workspace', minLength: 1, maxLength: 4096 },
      edits: {
        type: 'array',
        minItems: 1,
        maxItems: MAX_EDITS,
        items: {
          type: 'object',
          properties: {
            oldText: { type: 'string', description: 'The exact text to replace', maxLength: MAX_CHARACTERS },
            newText: { type: 'string', maxLength: MAX_CHARACTERS },
            all: { type: 'boolean', description: 'Replace each occurrence of oldText' },
            firstLine: { type: 'integer', minimum: 1, description: 'In place of oldText: the first line to replace' },
            lineCount: {
              type: 'integer',
              minimum: 0,
              description: 'How many lines; 0 inserts before firstLine; default 1',
            },
            expectedText: { type: 'string', description: 'What these lines are now', maxLength: MAX_CHARACTERS },
          },
          required: ['newText'],
          additionalProperties: false,
        },
      },
    },
    required: ['path', 'edits'],
    additionalProperties: false,
  },
  outputSchema: {
    type: 'object',
    properties: {
      path: { type: 'string' },
      bytes: { type: 'integer' },
      replaced: { type: 'integer' },
      diff: { type: 'string' },
      diffIsCut: { type: 'boolean' },
    },
    required: ['path', 'bytes', 'replaced', 'diff'],
    additionalProperties: false,
  },
  category: 'file_system',
  action: 'code:write',
  sideEffects: true,
  locality: 'Local',
  examples: [
    { path: 'src/config.ts', edits: [{ oldText: 'retries = 3', newText: 'retries = 5' }] },
    { path: 'notes.md', edits: [{ firstLine: 12, expectedText: '- call Kim\n', newText: '- call Kim on Monday\n' }] },
  ],
  failures: [
    {
      code: 'TEMPER_TOOL_INPUT_INVALID',
      when: 'oldText is not in the file, or more than once; or the lines are others',
    },
    ...FILE_FAILURES,
  ],
};

/** Changes parts of a text file below the workspace. The file has all changes or none. */
export function fileEditTool(deps: ToolboxDeps): Tool {
  // Two calls at the same time would each write what they read, and lose the change of the other.
  const queue = new SerialQueue();
  return checkedTool({
    descriptor: DESCRIPTOR,
    check(input, caller) {
      assertFileAllowed(deps, caller, 'file_edit', input);
      editsOf(input);
    },
    async call(input) {
      const path = requiredText(input, 'path');
      const edits = editsOf(input);
      return queue.run(() => edit(deps, path, edits));
    },
  });
}

async function edit(deps: ToolboxDeps, path: string, edits: readonly Edit[]): Promise<Json> {
  const { workspace, protectedFolders } = deps;
  const { folder, name } = await resolveExistingEntry(path, workspace, protectedFolders);
  const { mode } = await regularFile(join(folder, name), path);
  const read = (): Promise<string> => readFileBelow(path, workspace, [workspace], () => undefined, protectedFolders);
  const before = await read();
  if (before.includes('\0') || before.includes('\ufffd')) {
    throw failed(path, 'is not a UTF-8 text file, or holds a replacement character (U+FFFD)');
  }
  const result = applyEdits(before, edits, MAX_CHARACTERS);
  if ('problem' in result) throw failed(path, `was not changed: ${result.problem}`);
  if ((await read()) !== before) throw failed(path, 'was changed by something else in the meantime; read it again');
  if (result.text !== before) await replaceFile(folder, name, result.text, mode & 0o777);
  const { diff, cut } = unifiedDiff(before, result.text, MAX_DIFF);
  const bytes = Buffer.byteLength(result.text);
  return { path, bytes, replaced: result.replaced, diff, ...(cut ? { diffIsCut: true } : {}) };
}

async function regularFile(target: string, path: string): Promise<{ mode: number }> {
  const stats = await lstat(target).catch((error: unknown) => {
    if (hasErrno(error, 'ENOENT')) throw failed(path, 'does not exist');
    throw error;
  });
  if (stats.isFile()) return stats;
  const shown = printable(path, 200);
  throw new TemperError(
    'TEMPER_FILE_DENIED',
    `"${shown}" is a folder, a link or a device; only regular files are changed`,
  );
}

function editsOf(input: Json): Edit[] {
  const edits = member(input, 'edits');
  if (!Array.isArray(edits)) throw new TemperError('TEMPER_TOOL_INPUT_INVALID', '"edits" must be a list');
  return edits.map((item, index): Edit => {
    const newText = requiredText(item, 'newText');
    const firstLine = optionalNumber(item, 'firstLine');
    const [oldText, expectedText] = [member(item, 'oldText'), member(item, 'expectedText')];
    if (typeof oldText === 'string' && firstLine === undefined) {
      return { oldText, newText, all: member(item, 'all') === true };
    }
    const lineCount = optionalNumber(item, 'lineCount') ?? 1;
    const expected = lineCount === 0 ? (expectedText ?? '') : expectedText;
    if (firstLine === undefined || oldText !== undefined || typeof expected !== 'string') {
      throw new TemperError(
        'TEMPER_TOOL_INPUT_INVALID',
        `edits[${index}] needs either oldText, or firstLine with the expectedText of its lines`,
      );
    }
    return { firstLine, lineCount, expectedText: expected, newText };
  });
}

function failed(path: string, problem: string): TemperError {
  return new TemperError('TEMPER_FILE_FAILED', `"${printable(path, 200)}" ${problem}`);
}
