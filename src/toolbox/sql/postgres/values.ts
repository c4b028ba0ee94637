import { type Json, parseUntrustedJson } from '../../../lib/json.ts';

/** The types of PostgreSQL that have a form of their own in JSON, by their fixed object identifiers. All others are their text. */
interface ValueType {
  name: string;
  read: (text: string) => Json;
}

const text = (value: string): Json => value;

const TYPES: ReadonlyMap<number, ValueType> = new Map([
  [16, { name: 'bool', read: (value) => value === 't' }],
  [
    17,
    {
      name: 'bytea',
      read: (value) => (value.startsWith('\\x') ? Buffer.from(value.slice(2), 'hex').toString('base64') : value),
    },
  ],
  [20, { name: 'int8', read: text }],
  [21, { name: 'int2', read: readNumber }],
  [23, { name: 'int4', read: readNumber }],
  [25, { name: 'text', read: text }],
  [114, { name: 'json', read: readJson }],
  [700, { name: 'float4', read: readNumber }],
  [701, { name: 'float8', read: readNumber }],
  [1042, { name: 'bpchar', read: text }],
  [1043, { name: 'varchar', read: text }],
  [1082, { name: 'date', read: text }],
  [1114, { name: 'timestamp', read: readTime }],
  [1184, { name: 'timestamptz', read: readTime }],
  [1700, { name: 'numeric', read: text }],
  [2950, { name: 'uuid', read: text }],
  [3802, { name: 'jsonb', read: readJson }],
]);

/** The array type of each of them. */
const ELEMENTS: ReadonlyMap<number, number> = new Map([
  [199, 114],
  [1000, 16],
  [1001, 17],
  [1005, 21],
  [1007, 23],
  [1009, 25],
  [1014, 1042],
  [1015, 1043],
  [1016, 20],
  [1021, 700],
  [1022, 701],
  [1115, 1114],
  [1182, 1082],
  [1185, 1184],
  [1231, 1700],
  [2951, 2950],
  [3807, 3802],
]);

export function typeName(oid: number): string {
  const element = ELEMENTS.get(oid);
  return element === undefined ? (TYPES.get(oid)?.name ?? `oid ${oid}`) : `${TYPES.get(element)?.name ?? 'text'}[]`;
}

/** A value in the text form of the server. */
export function valueOf(oid: number, value: string | null): Json {
  if (value === null) return null;
  const element = ELEMENTS.get(oid);
  if (element === undefined) return TYPES.get(oid)?.read(value) ?? value;
  const read = TYPES.get(element)?.read ?? text;
  return arrayOf(value, read) ?? value;
}

/** NaN and infinity have no number in JSON. */
function readNumber(value: string): Json {
  const number = Number(value);
  return Number.isFinite(number) ? number : value;
}

function readJson(value: string): Json {
  try {
    return parseUntrustedJson(value);
  } catch {
    return value;
  }
}

/** `2026-03-01 10:00:00.5+00` in the form of ISO 8601. Dates before Christ and infinity stay as they are. */
function readTime(value: string): Json {
  const [, date, time, offset = ''] =
    /^(\d{4,6}-\d\d-\d\d) (\d\d:\d\d:\d\d(?:\.\d{1,6})?)([+-][\d:]{2,8})?$/.exec(value) ?? [];
  if (date === undefined || time === undefined) return value;
  return `${date}T${time}${offset === '+00' ? 'Z' : /^[+-]\d\d$/.test(offset) ? `${offset}:00` : offset}`;
}

const MAX_ARRAY_DEPTH = 6;

/** An array in the text form of PostgreSQL, such as `{1,NULL,{"a,b"}}`; undefined for other forms, such as one with bounds. */
function arrayOf(source: string, read: (text: string) => Json): Json[] | undefined {
  let at = 0;
  const list = (depth: number): Json[] | undefined => {
    const items: Json[] = [];
    if (source[at] !== '{' || depth > MAX_ARRAY_DEPTH) return undefined;
    at += 1;
    if (source[at] === '}') return ((at += 1), items);
    for (;;) {
      const item = source[at] === '{' ? list(depth + 1) : element();
      if (item === undefined) return undefined;
      items.push(item);
      const next = source[at];
      at += 1;
      if (next === '}') return items;
      if (next !== ',') return undefined;
    }
  };
  const element = (): Json | undefined => {
    if (source[at] !== '"') {
      const start = at;
      while (at < source.length && source[at] !== ',' && source[at] !== '}') at += 1;
      const plain = source.slice(start, at);
      return plain === 'NULL' ? null : read(plain);
    }
    let quoted = '';
    for (at += 1; at < source.length && source[at] !== '"'; at += 1) {
      if (source[at] === '\\') at += 1;
      quoted += source[at] ?? '';
    }
    at += 1;
    return read(quoted);
  };
  const items = list(1);
  return at === source.length ? items : undefined;
}
