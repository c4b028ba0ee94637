/** A line of two texts: in both, only in the second, or only in the first one. */
export interface DiffLine {
  readonly mark: ' ' | '+' | '-';
  readonly text: string;
}

/** Texts with more changed lines are shown one after the other. Bounds time and memory by its square. */
const MAX_CHANGES = 2_000;

/** The lines of two texts with as few changes as possible (Myers), removed lines before added ones. */
export function compareLines(before: readonly string[], after: readonly string[]): DiffLine[] {
  const { start, end } = commonEnds(before, after);
  const line = (mark: DiffLine['mark']) => (text: string) => ({ mark, text });
  const [old, fresh] = [before.slice(start, before.length - end), after.slice(start, after.length - end)];
  const middle = shortestEdit(old, fresh) ?? [...old.map(line('-')), ...fresh.map(line('+'))];
  return [
    ...before.slice(0, start).map(line(' ')),
    ...removedFirst(middle),
    ...before.slice(before.length - end).map(line(' ')),
  ];
}

function commonEnds(before: readonly string[], after: readonly string[]): { start: number; end: number } {
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && before[start] === after[start]) start += 1;
  let end = 0;
  while (end < shorter - start && before[before.length - 1 - end] === after[after.length - 1 - end]) end += 1;
  return { start, end };
}

/** Undefined when more than MAX_CHANGES lines differ. */
function shortestEdit(before: readonly string[], after: readonly string[]): DiffLine[] | undefined {
  const [old, fresh] = numbered(before, after);
  const rounds = furthestPoints(old, fresh);
  if (rounds === undefined) return undefined;
  const lines: DiffLine[] = [];
  let [row, column] = [before.length, after.length];
  for (let changes = rounds.length; changes >= 0; changes -= 1) {
    const previous = rounds[changes - 1];
    const [fromRow, fromColumn] =
      previous === undefined ? [0, 0] : stepBefore(previous, { changes, diagonal: row - column });
    while (row > fromRow && column > fromColumn) {
      row -= 1;
      column -= 1;
      lines.push({ mark: ' ', text: before[row] ?? '' });
    }
    if (previous === undefined) break;
    if (column > fromColumn) lines.push({ mark: '+', text: after[fromColumn] ?? '' });
    else lines.push({ mark: '-', text: before[fromRow] ?? '' });
    [row, column] = [fromRow, fromColumn];
  }
  return lines.reverse();
}

/** Lines as numbers, because long lines are slow to compare again and again. */
function numbered(before: readonly string[], after: readonly string[]): [Int32Array, Int32Array] {
  const known = new Map<string, number>();
  const numberOf = (text: string): number => {
    const number = known.get(text) ?? known.size;
    known.set(text, number);
    return number;
  };
  return [Int32Array.from(before, numberOf), Int32Array.from(after, numberOf)];
}

/**
 * For each number of changes before the last one, the furthest row that they reach on each diagonal, from `-changes` to `changes`.
 * Undefined when MAX_CHANGES do not reach the end.
 */
function furthestPoints(before: Int32Array, after: Int32Array): Int32Array[] | undefined {
  const rounds: Int32Array[] = [];
  for (let changes = 0; changes <= MAX_CHANGES; changes += 1) {
    const rows = new Int32Array(2 * changes + 1);
    const previous = rounds[changes - 1];
    for (let diagonal = -changes; diagonal <= changes; diagonal += 2) {
      let row = previous === undefined ? 0 : rowAfter(previous, { changes, diagonal });
      let column = row - diagonal;
      while (row < before.length && column < after.length && before[row] === after[column]) {
        row += 1;
        column += 1;
      }
      rows[diagonal + changes] = row;
      if (row >= before.length && column >= after.length) return rounds;
    }
    rounds.push(rows);
  }
  return undefined;
}

interface Step {
  readonly changes: number;
  readonly diagonal: number;
}

/** The row that one more change reaches from the previous points. */
function rowAfter(previous: Int32Array, step: Step): number {
  return isAddition(previous, step) ? rowOn(previous, step, 1) : rowOn(previous, step, -1) + 1;
}

/** The point from which the last change of a step starts. */
function stepBefore(previous: Int32Array, step: Step): [row: number, column: number] {
  const side = isAddition(previous, step) ? 1 : -1;
  const row = rowOn(previous, step, side);
  return [row, row - (step.diagonal + side)];
}

function isAddition(previous: Int32Array, step: Step): boolean {
  const { changes, diagonal } = step;
  if (diagonal === -changes) return true;
  return diagonal !== changes && rowOn(previous, step, -1) < rowOn(previous, step, 1);
}

/** The row of the neighbouring diagonal in the previous points, which begin one diagonal later. */
function rowOn(previous: Int32Array, { changes, diagonal }: Step, side: 1 | -1): number {
  return previous[diagonal + side + changes - 1] ?? 0;
}

/** Between two equal lines, the removed lines come first. */
function removedFirst(lines: readonly DiffLine[]): DiffLine[] {
  const ordered: DiffLine[] = [];
  let added: DiffLine[] = [];
  const flush = (): void => {
    for (const line of added) ordered.push(line);
    added = [];
  };
  for (const line of lines) {
    if (line.mark === ' ') flush();
    if (line.mark === '+') added.push(line);
    else ordered.push(line);
  }
  flush();
  return ordered;
}
