import { isJsonObject, type Json, type JsonObject } from '../../../lib/json.ts';
import { typesOf } from './schema-samples.ts';

/** Sizes of long values: far above those of usual tests, and cheap for every tool that works in linear time. */
const LONG_LIST = 130;
const LONG_TEXT = 1_500;

/** Values at the edges of what a schema allows in place of a value: empty, one, many, least, greatest, negative, zero, long, Unicode. */
export function boundaryValues(value: Json, schema: JsonObject): Json[] {
  const typed = Array.isArray(schema.enum) ? schema.enum : [];
  if (typeof value === 'string') return [...typed, ...boundaryTexts(value)];
  if (typeof value === 'number') return [...typed, ...boundaryNumbers(value, schema)];
  if (typeof value === 'boolean') return [!value];
  if (Array.isArray(value)) return boundaryLists(value);
  if (isJsonObject(value) && schema.properties === undefined) return [{}];
  return typesOf(schema).includes('null') ? [...typed, null] : typed;
}

function boundaryTexts(text: string): string[] {
  const long = text === '' ? 'a' : text;
  return [
    '',
    long.repeat(Math.ceil(LONG_TEXT / long.length)).slice(0, LONG_TEXT),
    `${text} ${text}`,
    `${text}\u00e9\u6f22\u{1f600}`,
    text.slice(0, 1),
    ` ${text} `,
    text.toUpperCase(),
    ' ',
  ];
}

function boundaryNumbers(value: number, schema: JsonObject): number[] {
  const bounds = [schema.minimum, schema.maximum].filter((bound) => typeof bound === 'number');
  const fraction = typesOf(schema).includes('number') ? [value + 0.5, 0.1] : [];
  return [
    0,
    -value,
    1,
    -1,
    value + 1,
    ...bounds,
    value * 2,
    ...fraction,
    Math.max(100, Math.ceil(Math.abs(value) * 3)),
  ];
}

function boundaryLists(items: Json[]): Json[] {
  if (items.length === 0) return [];
  const many = Array.from({ length: LONG_LIST }, (_, index) => items[index % items.length] ?? null);
  return [[], many, items.slice(0, 1), [...items, ...items], items.toReversed(), items.slice(1)];
}

/** Values that differ slightly from a value, of the same type. */
export function neighbours(value: Json, schema: JsonObject): Json[] {
  if (Array.isArray(schema.enum)) return schema.enum.filter((other) => other !== value);
  if (typeof value === 'boolean') return [!value];
  if (typeof value === 'number') return [value + 1, value - 1, value * 2 + 1, value + 7];
  if (typeof value === 'string') return neighbourTexts(value);
  if (!Array.isArray(value)) return [];
  const [first] = value;
  return first === undefined ? [] : [value.slice(0, -1), [...value, first], [...value.slice(1), first]];
}

function neighbourTexts(text: string): string[] {
  const characters = Array.from(text);
  const shifted = characters.map((character) => shiftCharacter(character));
  const middle = Math.floor(shifted.length / 2);
  const oneChanged = characters.map((character, index) => (index === middle ? (shifted[index] ?? '') : character));
  return [oneChanged.join(''), shifted.join(''), `${text}${shifted[0] ?? 'a'}`, characters.toReversed().join('')];
}

/** The next letter of the same case, the next digit; any other character stays. */
function shiftCharacter(character: string): string {
  if (/^[a-y]$/i.test(character) || /^[0-8]$/.test(character)) {
    return String.fromCharCode(character.charCodeAt(0) + 1);
  }
  return { z: 'a', Z: 'A', '9': '1' }[character] ?? character;
}
