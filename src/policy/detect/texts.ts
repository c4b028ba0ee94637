import { isJsonObject, type Json, member } from '../../lib/json.ts';

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

/** Members that name a program, and members that hold its arguments. */
const PROGRAM_NAMES = ['command', 'cmd', 'program', 'executable', 'binary'] as const;
const ARGUMENT_NAMES = ['args', 'argv', 'arguments', 'parameters'] as const;

/**
 * Command lines that the value spells in parts: every list of words, and the program of an object with its arguments. Iterative and
 * linear, as `argumentTexts` is.
 */
export function splitCommandLines(value: Json): string[] {
  const lines: string[] = [];
  const pending: Json[] = [value];
  for (let item = pending.pop(); item !== undefined; item = pending.pop()) {
    if (Array.isArray(item)) {
      const words = wordsOf(item);
      if (words !== undefined) lines.push(words);
      else for (const child of item) pending.push(child);
    } else if (isJsonObject(item)) {
      lines.push(...programLines(item));
      for (const child of Object.values(item)) pending.push(child);
    }
  }
  return lines;
}

function programLines(item: Json): string[] {
  const programs = PROGRAM_NAMES.map((name) => wordsOf(member(item, name))).filter((words) => words !== undefined);
  const tails = ARGUMENT_NAMES.map((name) => wordsOf(member(item, name))).filter((words) => words !== undefined);
  return programs.flatMap((program) => tails.map((words) => `${program} ${words}`));
}

/** Strings of a list, joined; an element that is not text ends nothing and counts as a word. */
function wordsOf(value: Json | undefined): string | undefined {
  if (typeof value === 'string') return value;
  if (!Array.isArray(value) || value.some((word) => typeof word === 'object' && word !== null)) return undefined;
  return value.map(String).join(' ');
}
