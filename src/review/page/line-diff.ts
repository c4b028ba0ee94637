import type { BoxLine, Span } from './document.ts';
import { MAX_BLANK_LINES, remark, splitSpans, wrapped } from './code-lines.ts';
import { compareLines, type DiffLine } from '../../lib/text/shortest-edit.ts';

const CONTEXT_LINES = 3;
const FOLDED = '⋯';

/** The unified difference of two foreign texts: hunks of changed lines, each with three lines around it. Empty when the texts are equal. */
export function diffLines(before: string, after: string): BoxLine[] {
  if (before === after) return [];
  const all = compareLines(before.split('\n'), after.split('\n'));
  const isShown = nearChanges(all);
  const lines: BoxLine[] = [];
  const next = { before: 1, after: 1 };
  let skipped = 0;
  let isInHunk = false;
  for (let index = 0; index < all.length; index += 1) {
    const line = all[index];
    if (line === undefined || isShown[index] !== true) {
      skipped += 1;
      isInHunk = false;
      count(next, ' ', 1);
      continue;
    }
    if (!isInHunk) lines.push(hunkHeader(skipped, hunkFrom(all, isShown, index), next));
    isInHunk = true;
    skipped = 0;
    const blank = blankRun(all, index);
    if (blank > MAX_BLANK_LINES) {
      lines.push(remark(line.mark, `${blank} blank lines`));
      index += blank - 1;
      count(next, line.mark, blank);
    } else {
      for (const row of wrapped(line.mark, spansOf(line))) lines.push(row);
      count(next, line.mark, 1);
    }
  }
  if (skipped > 0) lines.push(remark(FOLDED, equalLines(skipped)));
  return lines;
}

/** The numbers of the next lines of both texts. */
interface Position {
  before: number;
  after: number;
}

function count(position: Position, mark: DiffLine['mark'], lines: number): void {
  if (mark !== '+') position.before += lines;
  if (mark !== '-') position.after += lines;
}

/** What is folded, then the place of the hunk in both texts. */
function hunkHeader(skipped: number, hunk: readonly DiffLine[], { before, after }: Position): BoxLine {
  const lengthWithout = (mark: DiffLine['mark']): number => hunk.filter((line) => line.mark !== mark).length;
  const place = `@@ -${before},${lengthWithout('+')} +${after},${lengthWithout('-')} @@`;
  return remark(FOLDED, skipped === 0 ? place : `${equalLines(skipped)} ${place}`);
}

function hunkFrom(all: readonly DiffLine[], isShown: readonly boolean[], start: number): readonly DiffLine[] {
  const end = isShown.indexOf(false, start);
  return all.slice(start, end === -1 ? all.length : end);
}

function equalLines(skipped: number): string {
  return skipped === 1 ? '1 equal line' : `${skipped} equal lines`;
}

function spansOf({ mark, text }: DiffLine): Span[] {
  const kind = mark === '+' ? 'added' : mark === '-' ? 'removed' : 'plain';
  const [spans = []] = splitSpans(text, []);
  return spans.map((span) => (span.kind === 'escape' ? span : { ...span, kind }));
}

/** The number of blank lines from here on that have the same mark. */
function blankRun(lines: readonly DiffLine[], from: number): number {
  let end = from;
  while (lines[end]?.text.trim() === '' && lines[end]?.mark === lines[from]?.mark) end += 1;
  return end - from;
}

/** For each line whether it is changed or near a changed one. */
function nearChanges(lines: readonly DiffLine[]): boolean[] {
  const isShown = lines.map(() => false);
  for (const [index, { mark }] of lines.entries()) {
    if (mark === ' ') continue;
    isShown.fill(true, Math.max(0, index - CONTEXT_LINES), index + CONTEXT_LINES + 1);
  }
  return isShown;
}
