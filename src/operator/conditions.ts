import { CONDITIONS } from '../api/v1alpha1/reasons.ts';
import type { Condition } from '../api/v1alpha1/common.ts';

/** What a condition shall say; when it began to say so is found out by comparing with what it said. */
export interface Finding<Type extends string = string> {
  readonly type: Type;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message: string;
}

/** A change worth an Event. */
export interface Transition {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

const LONGEST_MESSAGE = 4_096;

/** The conditions after the findings; those of other types stay as they are. Times move only with the status. */
export function withFindings(
  before: readonly Condition[] | undefined,
  findings: readonly Finding[],
  observedGeneration: number,
  now: Date,
): Condition[] {
  const known = new Map((before ?? []).map((condition) => [condition.type, condition]));
  for (const { type, status, reason, message } of findings) {
    const earlier = known.get(type);
    const lastTransitionTime = earlier?.status === status ? earlier.lastTransitionTime : timestamp(now);
    known.set(type, { type, status, observedGeneration, lastTransitionTime, reason, message: capped(message) });
  }
  return [...known.values()];
}

/** Conditions without those of a type: a fact that no longer holds either way. */
export function without(conditions: readonly Condition[] | undefined, type: string): Condition[] {
  return (conditions ?? []).filter((condition) => condition.type !== type);
}

/**
 * One Event a transition: a reason that changed. A condition that appears is told only when it is the one people wait for, or says
 * that something is wrong.
 */
export function transitions(
  before: readonly Condition[] | undefined,
  after: readonly Condition[],
  awaited: string,
): Transition[] {
  const known = new Map((before ?? []).map((condition) => [condition.type, condition]));
  return after.flatMap((condition): Transition[] => {
    const earlier = known.get(condition.type);
    const isNews = earlier === undefined ? isWorthTelling(condition, awaited) : earlier.reason !== condition.reason;
    if (!isNews) return [];
    const { reason, message } = condition;
    return [{ type: isBad(condition) ? 'Warning' : 'Normal', reason, message: message === '' ? reason : message }];
  });
}

function isWorthTelling({ type, status }: Condition, awaited: string): boolean {
  return type === awaited || (status === 'False' && type !== 'Fenced');
}

/** On purpose, or on the way. */
const NOT_BAD = new Set(['Starting', 'Suspended']);

function isBad({ status, reason }: Condition): boolean {
  return status === 'False' && !NOT_BAD.has(reason);
}

/** Equal in everything that people or programs read; a transition time alone is no difference. */
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

/** Is the reason documented for the condition of the kind? */
export function isKnownReason(kind: keyof typeof CONDITIONS, type: string, reason: string): boolean {
  return CONDITIONS[kind].some((entry) => entry.type === type && Object.hasOwn(entry.reasons, reason));
}

function capped(message: string): string {
  return message.length > LONGEST_MESSAGE ? `${message.slice(0, LONGEST_MESSAGE - 1)}…` : message;
}

/** RFC 3339 with whole seconds, as conditions are written. */
function timestamp(date: Date): string {
  return `${date.toISOString().slice(0, 19)}Z`;
}
