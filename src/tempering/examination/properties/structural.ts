import { sameJson } from '../../../forge/test-runs/compare-json.ts';
import { isJsonObject, type Json, type JsonObject } from '../../../lib/json.ts';
import type { Relation, RelationSources } from './relation.ts';

const MAX_INPUTS = 5;
const EXTRA_MEMBER = 'temperUnrelatedMember';

/** The order of the declared members, and members that the schema does not name, must not matter. */
export function structuralRelations({ open, plan, isValid }: RelationSources): Relation[] {
  const declared = isJsonObject(open.inputSchema.properties) ? Object.keys(open.inputSchema.properties) : [];
  return plan.bases.slice(0, MAX_INPUTS).flatMap((base): Relation[] => {
    const isDeclared = Object.keys(base).every((name) => declared.includes(name));
    const extended = { ...base, [EXTRA_MEMBER]: 0 };
    return [
      ...(isDeclared && Object.keys(base).length > 1 ? [relation('key-order', base, reordered(base))] : []),
      ...(declared.length > 0 && isValid(extended) ? [relation('additional-members', base, extended)] : []),
    ];
  });
}

function relation(check: 'key-order' | 'additional-members', base: JsonObject, other: JsonObject): Relation {
  const reason =
    check === 'key-order'
      ? 'the order of the members changes the output'
      : 'a member that the schema does not name changes the output';
  return { check, base, other, reason, isTotal: true, holds: (first: Json, second: Json) => sameJson(first, second) };
}

function reordered(object: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).toReversed());
}
