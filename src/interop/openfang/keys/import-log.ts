import { dottedPath, type FieldPath } from '../../../api/findings.ts';
import { isJsonObject, type Json } from '../../../lib/json.ts';
import { printable } from '../../../lib/printable.ts';

/** What became of one key. */
export const KEY_RESULTS = ['Imported', 'Changed', 'NoEffectYet', 'NotImported', 'Refused', 'Unknown'] as const;
export type KeyResult = (typeof KEY_RESULTS)[number];

export interface ImportedKey {
  /** The key of the OpenFang manifest, such as `capabilities.tools[2]`. */
  readonly key: string;
  readonly result: KeyResult;
  /** The value, escaped and shortened; absent for keys that may hold a secret. */
  readonly value?: string;
  /** The field that has the value, such as `spec.grants.tools[1]`; absent when no field has it. */
  readonly field?: string;
  readonly note?: string;
}

interface KeyOutcome {
  readonly value?: Json;
  readonly field?: string;
  readonly note?: string;
}

const MAX_SHOWN = 80;

/** Keys whose values limit an agent. A value that cannot be read must not mean "no limit". */
const LIMITING: ReadonlySet<string> = new Set([
  'resources',
  'exec_policy',
  'autonomous',
  'tool_allowlist',
  'tool_blocklist',
]);

export function isLimiting(path: FieldPath): boolean {
  return LIMITING.has(String(path[0]));
}

/** Collects what became of each key of one manifest, and why the manifest as a whole cannot be imported. */
export class ImportLog {
  readonly #keys: (ImportedKey & { path: FieldPath })[] = [];
  readonly #problems: string[] = [];
  readonly #covered = new Set<string>();

  get problems(): readonly string[] {
    return this.#problems;
  }

  get keys(): readonly (ImportedKey & { path: FieldPath })[] {
    return this.#keys;
  }

  add(path: FieldPath, result: KeyResult, { value, field, note }: KeyOutcome = {}): void {
    this.#covered.add(JSON.stringify(path));
    this.#keys.push({
      path,
      key: dottedPath(path),
      result,
      ...(value === undefined ? {} : { value: shown(value) }),
      ...(field === undefined ? {} : { field }),
      ...(note === undefined ? {} : { note }),
    });
  }

  imported(path: FieldPath, value: Json, field: string, note?: string): void {
    this.add(path, 'Imported', { value, field, ...(note === undefined ? {} : { note }) });
  }

  /** The file is not imported. */
  refuseFile(path: FieldPath, note: string, value?: Json): void {
    this.add(path, 'Refused', { note, ...(value === undefined ? {} : { value }) });
    this.#problems.push(`${printable(dottedPath(path), 200)}: ${note}`);
  }

  /** A value of a wrong type or out of range. Of a limit it refuses the file. */
  invalid(path: FieldPath, value: Json, expected: string): void {
    const note = `is not ${expected}`;
    if (isLimiting(path)) this.refuseFile(path, `${note}; a limit that cannot be read must not mean no limit`, value);
    else this.add(path, 'NotImported', { value, note });
  }

  /** Has the key, or one above it, a result? */
  covers(path: FieldPath): boolean {
    for (let length = path.length; length > 0; length -= 1) {
      if (this.#covered.has(JSON.stringify(path.slice(0, length)))) return true;
    }
    return false;
  }
}

function shown(value: Json): string {
  return printable(typeof value === 'string' ? value : JSON.stringify(value), MAX_SHOWN);
}

/** The paths of all values that have no values below them, in document order. */
export function leavesOf(value: Json, path: FieldPath = []): FieldPath[] {
  const members: [string | number, Json][] = Array.isArray(value)
    ? [...value.entries()]
    : isJsonObject(value)
      ? Object.entries(value)
      : [];
  if (members.length === 0) return path.length === 0 ? [] : [path];
  return members.flatMap(([key, inner]) => leavesOf(inner, [...path, key]));
}
