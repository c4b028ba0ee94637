import { printable } from '../../lib/printable.ts';

/** Something that a child asks for and its parent does not have. */
export interface Refusal {
  /** Path of the field: `spec.grants.network[0]`. */
  field: string;
  /** What the child asks for, what the parent has, and what to do. */
  message: string;
}

export function refusal(field: string, asked: string, has: string): Refusal {
  const text = printable(asked, 256);
  return { field, message: `${field} ${text} exceeds the parent, which has ${has}; narrow it, or extend the parent` };
}

export function quotedList(items: readonly string[]): string {
  if (items.length === 0) return 'none';
  const shown = items.slice(0, 6).map((item) => `"${printable(item, 128)}"`);
  return items.length > 6 ? `${shown.join(', ')} and ${items.length - 6} more` : shown.join(', ');
}
