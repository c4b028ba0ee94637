import { type Json, isJsonObject, member } from '../lib/json.ts';
import type { FieldPath } from './findings.ts';
import type { KindName } from './v1alpha1/kinds.ts';

/** A spec field that is validated and stored, but that no code acts on yet. */
export interface FieldNotInForce {
  readonly kind: KindName;
  /** Dotted path below `spec`; `[]` stands for any item of a list. Includes all fields below it. */
  readonly field: string;
  /** `cluster`: `temper run` acts on the field, a cluster does not. `run`: a cluster does, `temper run` does not. */
  readonly where: 'everywhere' | 'cluster' | 'run';
  /** What the field will do, completing the sentence "It will …". */
  readonly plan: string;
}

/**
 * The one list of such fields, for `temper validate`, the conditions of the objects and the reference pages. A field of a later version is
 * here from its first day.
 */
export const NOT_IN_FORCE: readonly FieldNotInForce[] = [];

/** The fields of the table that the spec sets. Never throws. */
export function fieldsNotInForce(
  kind: KindName,
  spec: unknown,
  table: readonly FieldNotInForce[] = NOT_IN_FORCE,
): FieldNotInForce[] {
  return table.filter(({ kind: ofKind, field }) => {
    if (ofKind !== kind) return false;
    const values = valuesAt(spec as Json, field.split('.').slice(1));
    return values.some((value) => value !== null);
  });
}

/** The entry that covers a field of the reference page, if any: its own, or that of a field above it. */
export function entryOf(
  kind: KindName,
  field: string,
  table: readonly FieldNotInForce[] = NOT_IN_FORCE,
): FieldNotInForce | undefined {
  return table.find((entry) => entry.kind === kind && (field === entry.field || isBelow(field, entry.field)));
}

/** The path of the field, or of the first list above it. */
export function segmentsOf(field: string): FieldPath {
  return (field.split('[]', 1)[0] ?? '').split('.');
}

const PLACES: Readonly<Record<FieldNotInForce['where'], string>> = {
  everywhere: 'yet',
  cluster: 'on a cluster yet',
  run: 'with temper run yet',
};

/** `spec.decay.idle has no effect yet; it will lower …` */
export function describeNotInForce({ field, where, plan }: FieldNotInForce): string {
  return `${field} has no effect ${PLACES[where]}; it will ${plan}`;
}

function isBelow(field: string, parent: string): boolean {
  return field.startsWith(`${parent}.`) || field.startsWith(`${parent}[`);
}

function valuesAt(spec: Json | undefined, path: readonly string[]): Json[] {
  let values = spec === undefined ? [] : [spec];
  for (const segment of path) {
    values = values.flatMap((value) => {
      const found = isJsonObject(value) ? member(value, segment.replace('[]', '')) : undefined;
      if (found === undefined) return [];
      return segment.endsWith('[]') ? (Array.isArray(found) ? found : []) : [found];
    });
  }
  return values;
}
