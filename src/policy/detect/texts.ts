import type { Json } from '../../lib/json.ts';

/** One string in the arguments of a call, with the name of its member. */
export interface ArgumentText {
  name: string;
  text: string;
}

/** Member names of at least this length are scanned like values. */
const MIN_SCANNED_NAME = 16;

/** Every string in the value. Iterative, so that a deeply nested value cannot overflow the stack. */
export function argumentTexts(value: Json): ArgumentText[] {
  const texts: ArgumentText[] = [];
  const pending: { name: string; value: Json }[] = [{ name: '', value }];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { name, value: item } = next;
    if (typeof item === 'string') {
      texts.push({ name, text: item });
    } else if (Array.isArray(item)) {
      for (const child of item) pending.push({ name, value: child });
    } else if (typeof item === 'object' && item !== null) {
      for (const key of Object.keys(item)) {
        if (key.length >= MIN_SCANNED_NAME) texts.push({ name: key, text: key });
        pending.push({ name: key, value: item[key] ?? null });
      }
    }
  }
  return texts;
}
