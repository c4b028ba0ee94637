import { printable } from '../lib/printable.ts';
import type { Json } from '../lib/json.ts';
import { displayWidth, padToWidth } from './display-width.ts';

const MAX_CELL = 120;

/** Formats rows under their headings as kubectl does: each column as wide as its widest cell, two spaces apart. */
export function table(headings: readonly string[], rows: readonly (readonly string[])[], maxCell = MAX_CELL): string {
  const cells = rows.map((row) => printableCells(row, maxCell));
  return formatRows([headings, ...cells], columnWidths([headings, ...cells]));
}

/** The width of each column in terminal columns. */
export function columnWidths(cells: readonly (readonly string[])[]): number[] {
  return (cells[0] ?? []).map((_, column) => Math.max(...cells.map((row) => displayWidth(row[column] ?? ''))));
}

export function formatRows(cells: readonly (readonly string[])[], widths: readonly number[]): string {
  const lines = cells.map((row) => row.map((cell, column) => padToWidth(cell, widths[column] ?? 0)).join('  '));
  return lines.map((line) => `${line.trimEnd()}\n`).join('');
}

export function printableCells(row: readonly string[], maxCell = MAX_CELL): string[] {
  return row.map((cell) => printable(cell, maxCell));
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
