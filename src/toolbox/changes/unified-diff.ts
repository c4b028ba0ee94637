import { printable } from '../../lib/printable.ts';
import { compareLines, type DiffLine } from '../../lib/text/shortest-edit.ts';

const CONTEXT_LINES = 2;
const MAX_LINE = 200;

/** The hunks of a unified difference, at most `maxCharacters` long. `cut` when it has more. */
export function unifiedDiff(before: string, after: string, maxCharacters: number): { diff: string; cut: boolean } {
  const lines = compareLines(before.split('\n'), after.split('\n'));
  const isShown = nearChanges(lines);
  const next = { before: 1, after: 1 };
  let diff = '';
  for (let index = 0; index < lines.length; index += 1) {
    const line = lines[index];
    if (line === undefined) break;
    if (isShown[index] === true) {
      const header = isShown[index - 1] === true ? '' : hunkHeader(lines, isShown, index, next);
      const added = `${header}${line.mark}${shown(line.text)}\n`;
      if (diff.length + added.length > maxCharacters) return { diff, cut: true };
      diff += added;
    }
    if (line.mark !== '+') next.before += 1;
    if (line.mark !== '-') next.after += 1;
  }
  return { diff, cut: false };
}

function hunkHeader(
  lines: readonly DiffLine[],
  isShown: readonly boolean[],
  start: number,
  next: { before: number; after: number },
): string {
  const end = isShown.indexOf(false, start);
  const hunk = lines.slice(start, end === -1 ? lines.length : end);
  const lengthWithout = (mark: DiffLine['mark']): number => hunk.filter((line) => line.mark !== mark).length;
  return `@@ -${next.before},${lengthWithout('+')} +${next.after},${lengthWithout('-')} @@\n`;
}

function nearChanges(lines: readonly DiffLine[]): boolean[] {
  const isShown = lines.map(() => false);
  for (const [index, { mark }] of lines.entries()) {
    if (mark === ' ') continue;
    isShown.fill(true, Math.max(0, index - CONTEXT_LINES), index + CONTEXT_LINES + 1);
  }
  return isShown;
}

/** The line as one line; tabs are part of most code. */
function shown(text: string): string {
  const line = text.endsWith('\r') ? text.slice(0, -1) : text;
  const parts = line.slice(0, MAX_LINE).split('\t');
  return `${parts.map((part) => printable(part)).join('\t')}${line.length > MAX_LINE ? '…' : ''}`;
}
