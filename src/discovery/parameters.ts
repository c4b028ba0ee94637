import { isJsonObject, type Json, type JsonObject, parseUntrustedJson } from '../lib/json.ts';

const MAX_CHARACTERS = 2_048;
const MAX_DESCRIPTION = 200;
const MAX_PARAMETERS = 64;
const MAX_DEPTH = 3;

/** The names and the descriptions of the parameters of a schema, outer ones first, within limits: what a search reads of it. */
export function parameterText(schema: JsonObject): string {
  const parts: string[] = [];
  let level: Json[] = [schema];
  for (let depth = 0; depth < MAX_DEPTH && level.length > 0; depth += 1) {
    level = level.flatMap((one) => readLevel(one, parts));
  }
  return parts.join('\n').slice(0, MAX_CHARACTERS);
}

/** The same for a schema as JSON text. A text that is no schema has no parameters. */
export function parameterTextOf(schema: string): string {
  try {
    const value = parseUntrustedJson(schema);
    return isJsonObject(value) ? parameterText(value) : '';
  } catch {
    return '';
  }
}

/** Adds the parameters of one schema, and returns their schemas. */
function readLevel(schema: Json, parts: string[]): Json[] {
  if (!isJsonObject(schema)) return [];
  const { properties, items } = schema;
  const inner: Json[] = items === undefined ? [] : [items];
  if (!isJsonObject(properties)) return inner;
  for (const name of Object.keys(properties)) {
    if (parts.length >= MAX_PARAMETERS) return inner;
    const parameter = properties[name];
    if (!isJsonObject(parameter)) continue;
    const { description } = parameter;
    parts.push(
      typeof description === 'string'
        ? `${name.slice(0, 64)} ${description.slice(0, MAX_DESCRIPTION)}`
        : name.slice(0, 64),
    );
    inner.push(parameter);
  }
  return inner;
}
