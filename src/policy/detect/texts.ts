import type { Json } from '../../lib/json.ts';

/** One text among the arguments of a call, with the name of the member it stands under. */
export interface ArgumentText {
  name: string;
  text: string;
}

/** A member name this long may carry what a value would. */
const LONG_NAME = 16;

/** Every text in the value, without recursion, so that a deep value costs no more than a wide one. */
export function argumentTexts(value: Json): ArgumentText[] {
  const texts: ArgumentText[] = [];
  const open: { name: string; value: Json }[] = [{ name: '', value }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { name, value: item } = next;
    if (typeof item === 'string') {
      texts.push({ name, text: item });
    } else if (Array.isArray(item)) {
      for (const child of item) open.push({ name, value: child });
    } else if (typeof item === 'object' && item !== null) {
      for (const key of Object.keys(item)) {
        if (key.length >= LONG_NAME) texts.push({ name: key, text: key });
        open.push({ name: key, value: item[key] ?? null });
      }
    }
  }
  return texts;
}
