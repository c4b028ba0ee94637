import { ANNOTATIONS, LABELS } from '../../api/cluster.ts';
import { type Inboxes, inboxOf } from '../messages/message-entries.ts';
import type { Member } from '../team/member.ts';

/** A specialist ends when its task has its answer, and one without an answer at its time. */
export function isSpecialistOver(
  { agent: { metadata }, name, parent }: Member,
  inboxes: Inboxes,
  now: number,
): boolean {
  if (metadata.labels?.[LABELS.specialist] === undefined || parent === undefined) return false;
  const asked = [...inboxOf(inboxes, parent).asks.values()].filter(({ agent }) => agent === name);
  if (asked.some(({ state }) => state !== 'Pending')) return true;
  return Date.parse(metadata.annotations?.[ANNOTATIONS.endsAt] ?? '') <= now;
}
