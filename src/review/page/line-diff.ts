import type { BoxLine, Span } from './document.ts';
import { MAX_BLANK_LINES, remark, splitSpans, wrapped } from './code-lines.ts';

/** Cells of the comparison table; texts of more lines are shown one after the other. */
const MAX_CELLS = 4_000_000;
const CONTEXT_LINES = 3;

interface DiffLine {
  readonly mark: ' ' | '+' | '-';
  readonly text: string;
}

/** The lines that differ between two foreign texts, each with three lines around it. Empty when the texts are equal. */
export function diffLines(before: string, after: string): BoxLine[] {
  if (before === after) return [];
  const all = compare(before.split('\n'), after.split('\n'));
  const lines: BoxLine[] = [];
  let skipped = 0;
  for (let index = 0; index < all.length; index += 1) {
    const line = all[index];
    if (line === undefined || !isNearChange(all, index)) {
      skipped += 1;
      continue;
    }
    if (skipped > 0) lines.push(equalLines(skipped));
    skipped = 0;
    const blank = blankRun(all, index);
    if (blank > MAX_BLANK_LINES) {
      lines.push(remark(line.mark, `${blank} blank lines`));
      index += blank - 1;
    } else lines.push(...wrapped(line.mark, spansOf(line)));
  }
  if (skipped > 0) lines.push(equalLines(skipped));
  return lines;
}

function equalLines(count: number): BoxLine {
  return remark('⋯', count === 1 ? '1 equal line' : `${count} equal lines`);
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

function isNearChange(lines: readonly DiffLine[], index: number): boolean {
  return lines.slice(Math.max(0, index - CONTEXT_LINES), index + CONTEXT_LINES + 1).some(({ mark }) => mark !== ' ');
}

/** A longest common subsequence, after equal beginnings and ends. */
function compare(before: readonly string[], after: readonly string[]): DiffLine[] {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1;
  let end = 0;
  while (
    end < before.length - start &&
    end < after.length - start &&
    before[before.length - 1 - end] === after[after.length - 1 - end]
  )
    end += 1;
  return [
    ...before.slice(0, start).map(equal),
    ...compareMiddle(before.slice(start, before.length - end), after.slice(start, after.length - end)),
    ...before.slice(before.length - end).map(equal),
  ];
}

function compareMiddle(before: readonly string[], after: readonly string[]): DiffLine[] {
  if (before.length * after.length > MAX_CELLS) return [...before.map(removed), ...after.map(added)];
  const lengths = commonLengths(before, after);
  const width = after.length + 1;
  const lines: DiffLine[] = [];
  let [row, column] = [0, 0];
  while (row < before.length || column < after.length) {
    const [old, fresh] = [before[row], after[column]];
    if (old !== undefined && old === fresh) {
      lines.push(equal(old));
      row += 1;
      column += 1;
    } else if (
      fresh === undefined ||
      (old !== undefined && (lengths[(row + 1) * width + column] ?? 0) >= (lengths[row * width + column + 1] ?? 0))
    ) {
      lines.push(removed(old ?? ''));
      row += 1;
    } else {
      lines.push(added(fresh));
      column += 1;
    }
  }
  return lines;
}

/** The length of the longest common subsequence of the rest of both texts, for each pair of positions. */
function commonLengths(before: readonly string[], after: readonly string[]): Uint32Array {
  const width = after.length + 1;
  const lengths = new Uint32Array((before.length + 1) * width);
  for (let row = before.length - 1; row >= 0; row -= 1) {
    for (let column = after.length - 1; column >= 0; column -= 1) {
      lengths[row * width + column] =
        before[row] === after[column]
          ? (lengths[(row + 1) * width + column + 1] ?? 0) + 1
          : Math.max(lengths[(row + 1) * width + column] ?? 0, lengths[row * width + column + 1] ?? 0);
    }
  }
  return lengths;
}

const equal = (text: string): DiffLine => ({ mark: ' ', text });
const removed = (text: string): DiffLine => ({ mark: '-', text });
const added = (text: string): DiffLine => ({ mark: '+', text });
