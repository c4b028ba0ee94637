import type { Condition } from '../api/v1alpha1/common.ts';

/** The desired content of a condition. `lastTransitionTime` follows from the comparison with the existing condition. */
export interface ConditionUpdate<Type extends string = string> {
  readonly type: Type;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message: string;
}

/** A condition change that is recorded as an Event. */
export interface ConditionEvent {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

const MAX_MESSAGE_LENGTH = 4_096;

/**
 * Applies the findings to the conditions. Removes a condition of one of the `removable` types that has no finding; other conditions
 * without a finding do not change. The transition time changes only with the status.
 */
export function updateConditions(
  before: readonly Condition[] | undefined,
  removable: readonly string[],
  findings: readonly ConditionUpdate[],
  observedGeneration: number,
  now: Date,
): Condition[] {
  const found = new Set(findings.map(({ type }) => type));
  const kept = (before ?? []).filter(({ type }) => found.has(type) || !removable.includes(type));
  const known = new Map(kept.map((condition) => [condition.type, condition]));
  for (const { type, status, reason, message } of findings) {
    const earlier = known.get(type);
    const lastTransitionTime = earlier?.status === status ? earlier.lastTransitionTime : timestamp(now);
    known.set(type, { type, status, observedGeneration, lastTransitionTime, reason, message: truncated(message) });
  }
  return [...known.values()];
}

/** Reasons of Ready that no retry fixes: only a change of an object does. */
const TERMINAL_REASONS: ReadonlySet<string> = new Set([
  'InvalidSpec',
  'GrantDenied',
  'AgentQuotaExceeded',
  'PodNameConflict',
]);
/** The conditions of `progressConditions`. Absent means False, as kstatus defines it. */
export const PROGRESS_CONDITIONS: readonly string[] = ['Reconciling', 'Stalled'];

/** The conditions by which kstatus, and so Flux and Argo CD, tell an object that will become Ready from one that will not. */
export function progressConditions(ready: ConditionUpdate<'Ready'>): ConditionUpdate[] {
  const { status, reason, message } = ready;
  if (status !== 'False') return [];
  if (TERMINAL_REASONS.has(reason)) return [{ type: 'Stalled', status: 'True', reason, message }];
  return reason === 'Starting' ? [{ type: 'Reconciling', status: 'True', reason, message }] : [];
}

/** Has one Event per change of a level, and several changes may have the same reason. */
export const TRUST_CONDITION = 'TrustLevel';

/**
 * One Event per transition, that is, per changed reason. A new condition is reported only when it is of the type `awaited`, or when it
 * reports a problem. The conditions of `progressConditions` repeat Ready and are not reported.
 */
export function conditionEvents(
  before: readonly Condition[] | undefined,
  after: readonly Condition[],
  awaited: string,
): ConditionEvent[] {
  const known = new Map((before ?? []).map((condition) => [condition.type, condition]));
  return after.flatMap((condition): ConditionEvent[] => {
    if (PROGRESS_CONDITIONS.includes(condition.type) || condition.type === TRUST_CONDITION) return [];
    const earlier = known.get(condition.type);
    const isChanged = earlier === undefined ? shouldReport(condition, awaited) : earlier.reason !== condition.reason;
    if (!isChanged) return [];
    const { reason, message } = condition;
    return [{ type: isWarning(condition) ? 'Warning' : 'Normal', reason, message: message === '' ? reason : message }];
  });
}

/** Conditions that describe the object as it is written. The object shows them; an Event would repeat them for each object. */
const WITHOUT_FIRST_EVENT = new Set(['Protected', 'FieldsInForce', 'CanForge']);

/** Reasons with status True that announce a problem. */
const ANNOUNCING_REASONS = new Set(['QuotaNearlyUsed', 'RunsFail']);

function shouldReport({ type, status, reason }: Condition, awaited: string): boolean {
  const isProblem = status === 'False' || ANNOUNCING_REASONS.has(reason);
  return type === awaited || (isProblem && !WITHOUT_FIRST_EVENT.has(type));
}

/** Reasons with status False that are not a problem: intended, temporary during the start, or a wait for users. */
const EXPECTED_REASONS = new Set([
  'Starting',
  'Suspended',
  'Promoted',
  'AgentsMissing',
  'ApprovalMissing',
  'AwaitingApproval',
  'PullRequestOpened',
  'Verifying',
  'CatalogueOnly',
]);

function isWarning({ status, reason }: Condition): boolean {
  return ANNOUNCING_REASONS.has(reason) || (status === 'False' && !EXPECTED_REASONS.has(reason));
}

/** Compares everything except the transition time. */
export function sameConditions(one: readonly Condition[] | undefined, other: readonly Condition[]): boolean {
  const before = one ?? [];
  if (before.length !== other.length) return false;
  const known = new Map(before.map((condition) => [condition.type, condition]));
  return other.every((condition) => {
    const earlier = known.get(condition.type);
    return (
      earlier !== undefined &&
      earlier.status === condition.status &&
      earlier.reason === condition.reason &&
      earlier.message === condition.message &&
      earlier.observedGeneration === condition.observedGeneration
    );
  });
}

export function reasonOf(conditions: readonly Condition[] | undefined, type: string): string | undefined {
  return conditions?.find((condition) => condition.type === type)?.reason;
}

/** Has the operator written the conditions? Until then they are absent, or the default of the CRD. */
export function isReconciled(conditions: readonly Condition[] | undefined): boolean {
  return conditions !== undefined && reasonOf(conditions, 'Ready') !== 'Pending';
}

function truncated(message: string): string {
  return message.length > MAX_MESSAGE_LENGTH ? `${message.slice(0, MAX_MESSAGE_LENGTH - 1)}…` : message;
}

/** RFC 3339 with whole seconds, the format of metav1.Time. */
function timestamp(date: Date): string {
  return `${date.toISOString().slice(0, 19)}Z`;
}
