import { printable } from '../lib/printable.ts';
import type { Json } from '../lib/json.ts';

/** Formats rows under their headings as kubectl does: each column as wide as its widest cell, two spaces apart. */
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
  { name: 'd', ms: 86_400_000 },
  { name: 'h', ms: 3_600_000 },
  { name: 'm', ms: 60_000 },
  { name: 's', ms: 1_000 },
] as const;

/** The time since an RFC 3339 time, as `41s`, `6m`, `3h` or `12d`; `-` when the time is not valid. */
export function formatAge(since: string | undefined, now: Date): string {
  const elapsed = now.getTime() - Date.parse(since ?? '');
  if (Number.isNaN(elapsed)) return '-';
  for (const unit of UNITS) {
    if (elapsed >= unit.ms) return `${Math.floor(elapsed / unit.ms)}${unit.name}`;
  }
  return '0s';
}

/** Formats a value as one cell; `placeholder` when there is no value. */
export function formatCell(value: Json | undefined, placeholder = '-'): string {
  if (value === undefined || value === null) return placeholder;
  if (typeof value === 'number') return value.toLocaleString('en-US');
  return typeof value === 'string' ? value : JSON.stringify(value);
}
