import { parse, TomlDate, TomlError } from 'smol-toml';
import { parseDocuments } from '../../../api/yaml-documents.ts';
import { messageOf } from '../../../lib/errors.ts';
import { isJsonObject, type Json, type JsonObject, jsonDepth } from '../../../lib/json.ts';
import { printable } from '../../../lib/printable.ts';

export type ManifestFormat = 'toml' | 'json';

export type ParsedManifest = { readonly manifest: JsonObject } | { readonly problem: string };

const MAX_DEPTH = 32;
const MAX_VALUES = 10_000;

/** Parses the text of an untrusted manifest within limits of depth and number of values. Never throws for a bad text. */
export function parseOpenFangManifest(text: string, format: ManifestFormat): ParsedManifest {
  const parsed = format === 'toml' ? parseToml(text) : parseJson(text);
  if ('problem' in parsed) return parsed;
  if (!isJsonObject(parsed.value)) return { problem: 'the file has no table of keys' };
  if (jsonDepth(parsed.value, MAX_DEPTH + 1) > MAX_DEPTH)
    return { problem: `values are nested deeper than ${MAX_DEPTH}; flatten the file` };
  const copy = new PlainCopy();
  const manifest = copy.of(parsed.value) as JsonObject;
  return copy.isTooLarge ? { problem: `the file has more than ${MAX_VALUES} values; split it` } : { manifest };
}

type ParsedText = { readonly value: Json } | { readonly problem: string };

function parseToml(text: string): ParsedText {
  try {
    return { value: parse(text, { maxDepth: MAX_DEPTH }) as Json };
  } catch (error) {
    if (!(error instanceof TomlError)) return { problem: 'the file is not TOML' };
    // The message continues with lines of the file.
    const [reason = ''] = messageOf(error).split('\n');
    return { problem: `line ${error.line}, column ${error.column}: ${printable(reason, 200)}` };
  }
}

/** The YAML parser of manifests reads JSON too; it refuses a key that occurs twice. */
function parseJson(text: string): ParsedText {
  const { documents, errors } = parseDocuments(text);
  const [error] = errors;
  if (error !== undefined)
    return {
      problem: `line ${error.position.line}, column ${error.position.column}: ${printable(error.message, 200)}`,
    };
  return documents.length === 1 ? { value: documents[0]?.value ?? null } : { problem: 'the file is not one document' };
}

/** Copies a parsed value as plain JSON: dates and numbers without a JSON form become texts, and `__proto__` an ordinary member. */
class PlainCopy {
  #values = 0;

  get isTooLarge(): boolean {
    return this.#values > MAX_VALUES;
  }

  of(value: unknown): Json {
    this.#values += 1;
    if (this.isTooLarge) return null;
    if (typeof value === 'string' || typeof value === 'boolean') return value;
    if (typeof value === 'number') return Number.isFinite(value) ? value : String(value);
    if (value instanceof TomlDate) return value.toISOString();
    if (Array.isArray(value)) return value.map((item) => this.of(item));
    return typeof value === 'object' && value !== null ? this.#members(value) : null;
  }

  #members(value: object): JsonObject {
    const members: JsonObject = {};
    for (const [key, inner] of Object.entries(value)) {
      Object.defineProperty(members, key, {
        value: this.of(inner),
        enumerable: true,
        writable: true,
        configurable: true,
      });
    }
    return members;
  }
}
