import { type Json, isJsonObject, member } from '../lib/json.ts';
import type { FieldPath } from './findings.ts';
import type { KindName } from './v1alpha1/kinds.ts';

/** A spec field that is validated and stored, and that a runtime does not act on. */
export type FieldNotInForce = LaterField | ClusterField;

interface FieldOfKind {
  readonly kind: KindName;
  /** Dotted path below `spec`; `[]` stands for any item of a list. Includes all fields below it. */
  readonly field: string;
}

/** A field of a later version. */
interface LaterField extends FieldOfKind {
  /** `cluster`: `temper run` acts on the field, a cluster does not yet. `everywhere`: neither does. */
  readonly where: 'everywhere' | 'cluster';
  /** What the field will do, completing the sentence "It will …". */
  readonly plan: string;
}

/** A field for pods and objects of a cluster. `temper run` has no use for it, in any version. */
interface ClusterField extends FieldOfKind {
  readonly where: 'run';
  /** What takes the place of the field with `temper run`, as a sentence of its own. */
  readonly reason: string;
}

/**
 * The one list of such fields, for the note of `temper run`, the warnings of `temper validate`, the conditions of the objects and the
 * reference pages. A field of a later version is here from its first day.
 */
export const NOT_IN_FORCE: readonly FieldNotInForce[] = [
  clusterOnly('Agent', 'spec.sandbox.class', 'temper run has one sandbox, the processes that it starts'),
  clusterOnly('Agent', 'spec.sandbox.resources', 'with temper run the limits of each tool bound its process'),
  clusterOnly('Agent', 'spec.sandbox.workspace.size', 'temper run uses the folder of --workspace, without a limit'),
  clusterOnly(
    'Agent',
    'spec.sandbox.workspace.files',
    'temper run reads no ConfigMaps; put the files into the workspace',
  ),
  clusterOnly('Agent', 'spec.idle.scaleToZeroAfter', 'an idle agent of temper run has no pod'),
  clusterOnly('TrustPolicy', 'spec.promotion.toAgent.reportedEvidence', 'temper run observes every answer itself'),
  clusterOnly('TrustPolicy', 'spec.promotion.toShared.gitOps', 'temper run opens no pull requests; use temper approve'),
  clusterOnly('TrustPolicy', 'spec.approvals.escalation', 'temper run asks its own user alone'),
  clusterOnly('TrustPolicy', 'spec.quotas.cpu', 'temper run requests no CPU'),
  clusterOnly('TrustPolicy', 'spec.quotas.memory', 'temper run requests no memory'),
];

function clusterOnly(kind: KindName, field: string, reason: string): ClusterField {
  return { kind, field, where: 'run', reason };
}

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

/** `spec.decay.idle has no effect yet; it will lower …`, or `spec.sandbox.class has an effect only on a cluster: …` */
export function describeNotInForce(entry: FieldNotInForce): string {
  if (entry.where === 'run') return `${entry.field} has an effect only on a cluster: ${entry.reason}`;
  const place = entry.where === 'cluster' ? 'on a cluster yet' : 'yet';
  return `${entry.field} has no effect ${place}; it will ${entry.plan}`;
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
