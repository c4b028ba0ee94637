import type { Spent } from './load.ts';

/** One line of the table. */
export interface Row {
  readonly what: string;
  /** A requirement fails the run when it is missed; a goal is only reported; a figure beside them has no limit. */
  readonly kind: 'requirement' | 'goal' | 'beside';
  readonly value: string;
  readonly limit?: string;
  readonly met?: boolean;
  /** What it cost meanwhile. */
  readonly spent?: Spent;
  /** What one has to know to read the figure. */
  readonly note?: string;
}

/** A requirement or a goal: the value must not be above the limit. `show` gives number and unit. */
export function atMost(
  kind: 'requirement' | 'goal',
  what: string,
  value: number,
  limit: number,
  show: (value: number) => string,
  more: Pick<Row, 'spent' | 'note'> = {},
): Row {
  return { what, kind, value: show(value), limit: `≤ ${show(limit)}`, met: value <= limit, ...more };
}

export function format(rows: readonly Row[]): string {
  return rows.map(lineOf).join('');
}

function lineOf({ what, kind, value, limit, met, spent, note }: Row): string {
  const mark = met === undefined ? '·' : met ? '✓' : '✗';
  const against = limit === undefined ? '' : `   ${kind} ${limit}`;
  const lines = [`${mark} ${what}`, `${value}${against}`];
  if (spent !== undefined) lines.push(`meanwhile: ${spent.text}`);
  if (note !== undefined) lines.push(note);
  return `${lines.join('\n    ')}\n`;
}

export const milliseconds = (value: number): string => `${value.toFixed(value < 10 ? 1 : 0)} ms`;
export const seconds = (value: number): string => `${value.toFixed(1)} s`;
export const mebibytes = (bytes: number): string => `${(bytes / 1_048_576).toFixed(0)} MiB`;
export const plain = (value: number): string => String(Math.round(value * 100) / 100);
