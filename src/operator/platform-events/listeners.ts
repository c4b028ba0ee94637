import { triggersOf } from '../../api/schedule/triggers.ts';
import { subjectMatches } from '../../events/subject.ts';
import type { Cache } from '../kube/cache.ts';
import type { StoredAgent } from '../kube/types.ts';
import type { PlatformEventStore } from './ports.ts';

/** Agents with triggers on subjects, by namespace. */
const LISTENING = 'listening';

export function addListenerIndex(agents: Cache<StoredAgent>): void {
  agents.addIndex(LISTENING, ({ metadata, spec }) => (subjectsOf(spec).length === 0 ? [] : [metadata.namespace]));
}

/**
 * Whether a trigger or a subscription of the namespace matches the subject of an event about an Agent. Exact: the watch that brought the
 * change of the Agent brought every trigger that was written before it, and the stream leader has every subscription that was confirmed
 * before. A change of an object of another kind may arrive before an earlier trigger. Throws TEMPER_BUS_*.
 */
export async function hasListener(
  namespace: string,
  subject: string,
  { agents, store }: { agents: Cache<StoredAgent>; store: Pick<PlatformEventStore, 'subscribed'> },
): Promise<boolean> {
  const isMatch = (pattern: string): boolean => subjectMatches(pattern, subject);
  if (agents.byIndex(LISTENING, namespace).some(({ spec }) => subjectsOf(spec).some(isMatch))) return true;
  return (await store.subscribed(namespace)).some(isMatch);
}

function subjectsOf(spec: StoredAgent['spec']): string[] {
  return triggersOf(spec).flatMap(({ subject }) => (subject === undefined ? [] : [subject]));
}
