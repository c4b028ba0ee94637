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
  /** The value that already has its documented effect, such as the default. Without it, no value has one. */
  readonly inForce?: (value: Json) => boolean;
}

const is =
  (expected: Json) =>
  (value: Json): boolean =>
    value === expected;
const isEmpty = (value: Json): boolean => Array.isArray(value) && value.length === 0;

/** The one list of such fields, for `temper validate`, the conditions of the objects and the reference pages. */
export const NOT_IN_FORCE: readonly FieldNotInForce[] = [
  {
    kind: 'Agent',
    field: 'spec.schedule.triggers[].webhook',
    where: 'run',
    plan: 'give the agent a message for each signed request from outside',
  },
  {
    kind: 'Agent',
    field: 'spec.a2a.enabled',
    where: 'run',
    plan: 'make the agent available over A2A',
    inForce: is(false),
  },
  {
    kind: 'Agent',
    field: 'spec.grants.shell',
    where: 'everywhere',
    plan: 'let a terminal tool start these programs',
    inForce: isEmpty,
  },
  {
    kind: 'Agent',
    field: 'spec.grants.environment',
    where: 'everywhere',
    plan: 'let tools read these environment variables',
    inForce: isEmpty,
  },
  {
    kind: 'Capability',
    field: 'spec.displayName',
    where: 'everywhere',
    plan: 'name the capability in lists for human readers',
  },
  {
    kind: 'Capability',
    field: 'spec.hasSideEffects',
    where: 'cluster',
    plan: 'decide whether a composed tool may repeat the call',
    inForce: is(true),
  },
  {
    kind: 'Capability',
    field: 'spec.tool.inputSchema',
    where: 'cluster',
    plan: 'describe the arguments to the model; discovery searches them, and no agent can call the tool',
  },
  {
    kind: 'Capability',
    field: 'spec.tool.outputSchema',
    where: 'cluster',
    plan: 'check the output; discovery lists the tool, and no agent can call it',
  },
  {
    kind: 'Capability',
    field: 'spec.content',
    where: 'everywhere',
    plan: 'give its text to the model; discovery lists the capability only',
  },
  {
    kind: 'Capability',
    field: 'spec.examples',
    where: 'everywhere',
    plan: 'show how to use the capability',
  },
  {
    kind: 'Capability',
    field: 'spec.backend.mcp',
    where: 'cluster',
    plan: 'execute calls of the tool in the gateway',
  },
  {
    kind: 'Capability',
    field: 'spec.backend.http',
    where: 'everywhere',
    plan: 'execute calls of the tool in the gateway',
  },
];

/** The fields of the table that the spec sets to a value without effect. Never throws. */
export function fieldsNotInForce(kind: KindName, spec: unknown): FieldNotInForce[] {
  return NOT_IN_FORCE.filter(({ kind: ofKind, field, inForce }) => {
    if (ofKind !== kind) return false;
    const values = valuesAt(spec as Json, field.split('.').slice(1));
    return values.some((value) => value !== null && inForce?.(value) !== true);
  });
}

/** The entry that covers a field of the reference page, if any: its own, or that of a field above it. */
export function entryOf(kind: KindName, field: string): FieldNotInForce | undefined {
  return NOT_IN_FORCE.find((entry) => entry.kind === kind && (field === entry.field || isBelow(field, entry.field)));
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
export function describeNotInForce({ field, where, plan, inForce }: FieldNotInForce): string {
  const subject = inForce === undefined ? field : `this value of ${field}`;
  return `${subject} has no effect ${PLACES[where]}; it will ${plan}`;
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
