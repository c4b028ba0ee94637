import type { LoadReport } from './support/load.ts';

/** One figure of the report. */
export interface Row {
  readonly what: string;
  /** A missed requirement fails the run, a goal is only reported, a reference has no limit. */
  readonly kind: 'requirement' | 'goal' | 'reference';
  readonly value: string;
  readonly limit?: string;
  readonly met?: boolean;
  /** The processor time used during the measurement. */
  readonly spent?: LoadReport;
  /** Additional information about the figure. */
  readonly note?: string;
}

/** A requirement or a goal with an upper limit. `show` formats number and unit. */
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
  if (spent !== undefined) lines.push(`load: ${spent.text}`);
  if (note !== undefined) lines.push(note);
  return `${lines.join('\n    ')}\n`;
}

export const milliseconds = (value: number): string => `${value.toFixed(value < 10 ? 1 : 0)} ms`;
export const seconds = (value: number): string => `${value.toFixed(1)} s`;
export const times = (value: number): string => `${value.toFixed(2)} ×`;
export const mebibytes = (bytes: number): string => `${(bytes / 1_048_576).toFixed(0)} MiB`;
export const plain = (value: number): string => String(Math.round(value * 100) / 100);
