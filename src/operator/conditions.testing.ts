import { CONDITIONS } from '../api/v1alpha1/reasons.ts';

/** Is the reason documented for this condition type of the kind? */
export function isKnownReason(kind: keyof typeof CONDITIONS, type: string, reason: string): boolean {
  return CONDITIONS[kind].some((entry) => entry.type === type && Object.hasOwn(entry.reasons, reason));
}
