import type { ParsedArtifact } from '../../../forge/parse-artifact.ts';
import { isJsonObject, type JsonObject } from '../../../lib/json.ts';
import { typesOf } from '../inputs/schema-samples.ts';
import type { Claim, ClaimName } from '../types.ts';

/** Words of a name that say what a tool works on, not what it does. */
const SUBJECTS = new Set(
  `of the a an in from for to all number numbers integer integers list lists value values array arrays item items element
  elements text texts string strings word words amount amounts price prices data given set find get compute calculate values
  tool`.split(/\s+/),
);

/** Words after which a claim holds under a condition that these rules do not read. */
const CONDITIONS = new Set(
  `if when unless by except only not but otherwise each per other odd even excluding ignoring without descending decreasing reverse
  largest-first binary absolute squares squared cubes products product digits prime primes positive negative nested depth
  at most least top longest shortest case letters starting ending within between until limit first last every same frequency`.split(
    /\s+/,
  ),
);

/** Words that make the order of items matter. */
const ORDERED = new Set(
  `running cumulative moving rolling window consecutive adjacent neighbouring neighboring index indices indexes position
  positions sub subarray subarrays sublist substring subsequence contiguous alternating first last nth until before after previous next prefix suffix
  path pair pairs matrix row rows column columns weighted weight weights polynomial coefficients sequence stable
  tie ties earliest latest series queue stack push pop operations steps level nested start end left right split interleave
  compounded balance starting ending rotate rotation trend change changes difference differences growth streak peak`.split(
    /\s+/,
  ),
);

const ORDERED_PHRASES = [
  'given order',
  'their order',
  'original order',
  'same order',
  'order of',
  'in order',
  'in the order',
];

const PLAIN_CLAIMS: Readonly<Record<string, readonly ClaimName[]>> = {
  sum: ['sum'],
  total: ['sum'],
  mean: ['mean'],
  average: ['mean'],
  min: ['minimum'],
  minimum: ['minimum'],
  smallest: ['minimum'],
  max: ['maximum'],
  maximum: ['maximum'],
  largest: ['maximum'],
  count: ['count'],
  length: ['count'],
  sort: ['sorted', 'idempotent'],
  sorted: ['sorted', 'idempotent'],
  reverse: ['reversed'],
  reversed: ['reversed'],
  unique: ['distinct', 'idempotent'],
  distinct: ['distinct', 'idempotent'],
  dedupe: ['distinct', 'idempotent'],
  deduplicate: ['distinct', 'idempotent'],
  uppercase: ['upper-case', 'idempotent'],
  upper: ['upper-case', 'idempotent'],
  lowercase: ['lower-case', 'idempotent'],
  lower: ['lower-case', 'idempotent'],
  trim: ['idempotent'],
  clamp: ['idempotent'],
  abs: ['idempotent'],
  absolute: ['idempotent'],
  slugify: ['idempotent'],
  slug: ['idempotent'],
};

const ORDER_FREE = new Set(
  'sum total average mean median min minimum max maximum smallest largest variance deviation histogram unique distinct'.split(
    ' ',
  ),
);

const DIRECTIONS: readonly (readonly [string, string])[] = [
  ['encode', 'decode'],
  ['encrypt', 'decrypt'],
  ['escape', 'unescape'],
  ['compress', 'decompress'],
  ['pack', 'unpack'],
];

/** The properties that the name and the description claim. Fixed rules read them, no model does. */
export function claimsOf({ artifact, inputSchema }: Pick<ParsedArtifact, 'artifact' | 'inputSchema'>): Claim[] {
  const name = wordsOf(artifact.name.replaceAll(/[_-]/g, ' '));
  const all = [...name, ...wordsOf(artifact.description)];
  return [...plainClaims(name, all), ...orderClaims(name, all), ...inverseClaims(inputSchema)];
}

/** The name says one thing and nothing else, and no word of the description sets a condition. */
function plainClaims(name: readonly string[], all: readonly string[]): Claim[] {
  const said = name.filter((word) => !SUBJECTS.has(word));
  const [only] = said;
  if (said.length !== 1 || only === undefined || all.some((word) => CONDITIONS.has(word) && word !== only)) return [];
  const claims = Object.hasOwn(PLAIN_CLAIMS, only) ? PLAIN_CLAIMS[only] : undefined;
  return (claims ?? []).map((claim) => ({ claim, because: `the name says "${only}"` }));
}

function orderClaims(name: readonly string[], all: readonly string[]): Claim[] {
  const text = all.join(' ');
  for (const phrase of ['in any order', 'regardless of order', 'order does not matter', 'regardless of the order']) {
    if (text.includes(phrase)) return [{ claim: 'order-independent', because: `the description says "${phrase}"` }];
  }
  if (ORDERED_PHRASES.some((phrase) => text.includes(phrase))) return [];
  const word = name.find((candidate) => ORDER_FREE.has(candidate));
  if (word === undefined || all.some((other) => ORDERED.has(other))) return [];
  return [{ claim: 'order-independent', because: `the name says "${word}"` }];
}

/** One member chooses between two directions, such as encode and decode. */
function inverseClaims(inputSchema: JsonObject): Claim[] {
  const direction = directionOf(inputSchema);
  if (direction === undefined) return [];
  const because = `the member has the values "${direction.forward}" and "${direction.backward}"`;
  return [{ claim: 'invertible', because }];
}

export function directionOf(
  inputSchema: JsonObject,
): { member: string; forward: string; backward: string } | undefined {
  const properties = isJsonObject(inputSchema.properties) ? inputSchema.properties : {};
  for (const [member, property] of Object.entries(properties)) {
    const values = isJsonObject(property) && Array.isArray(property.enum) ? property.enum : [];
    const pair = DIRECTIONS.find((direction) => direction.every((value) => values.includes(value)));
    if (pair !== undefined) return { member, forward: pair[0], backward: pair[1] };
  }
  return undefined;
}

/** The only member of an object schema, when it has one of the types. */
export function onlyMember(schema: JsonObject, types: readonly string[]): string | undefined {
  const properties = isJsonObject(schema.properties) ? Object.entries(schema.properties) : [];
  const [first] = properties;
  if (properties.length !== 1 || first === undefined) return undefined;
  const [name, property] = first;
  return isJsonObject(property) && typesOf(property).some((type) => types.includes(type)) ? name : undefined;
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[a-z]+/g) ?? [];
}
