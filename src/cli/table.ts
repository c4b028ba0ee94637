import { printable } from '../lib/escape.ts';
import type { Json } from '../lib/json.ts';

/** Rows under upper-case headings, columns as wide as their widest cell, two spaces apart; as kubectl prints. */
export function table(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = [headings, ...rows.map((row) => row.map((cell) => printable(cell, 120)))];
  const widths = headings.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  return cells
    .map(
      (row) =>
        `${row
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('');
}

const UNITS = [
  { name: 'd', milliseconds: 86_400_000 },
  { name: 'h', milliseconds: 3_600_000 },
  { name: 'm', milliseconds: 60_000 },
  { name: 's', milliseconds: 1_000 },
] as const;

/** `41s`, `6m`, `3h`, `12d`: the age of something since an RFC 3339 time; `-` when unknown. */
export function age(since: string | undefined, now: Date): string {
  const elapsed = now.getTime() - Date.parse(since ?? '');
  if (Number.isNaN(elapsed)) return '-';
  for (const unit of UNITS) {
    if (elapsed >= unit.milliseconds) return `${Math.floor(elapsed / unit.milliseconds)}${unit.name}`;
  }
  return '0s';
}

/** A value as one cell; `nothing` where there is none. */
export function cell(value: Json | undefined, nothing = '-'): string {
  if (value === undefined || value === null) return nothing;
  if (typeof value === 'number') return value.toLocaleString('en-US');
  return typeof value === 'string' ? value : JSON.stringify(value);
}
