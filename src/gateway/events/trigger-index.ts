import { triggersOf } from '../../api/schedule/triggers.ts';
import type { Agent } from '../../api/v1alpha1/agent.ts';
import { SubjectTree } from '../../events/subject-tree.ts';
import type { Change } from '../../kube/informer/store.ts';
import type { Recipient } from '../../nats/events/accepted-events.ts';
import { hasSameSpec } from '../cluster/prune.ts';

interface Entry {
  readonly subject: string;
  readonly recipient: Recipient;
}

/** The triggers of all Agents by namespace and subject, from the informer cache: an event costs what it matches, however many agents there are. */
export class TriggerIndex {
  readonly #trees = new Map<string, SubjectTree<Recipient>>();
  readonly #entries = new Map<string, readonly Entry[]>();

  agentChanged(change: Change<Agent>): void {
    const { object } = change;
    if (change.type === 'updated' && hasSameSpec(change.before, object)) return;
    const { namespace = '', uid = '' } = object.metadata;
    if (change.type === 'updated' && change.before.metadata.uid !== uid)
      this.#replace(namespace, change.before.metadata.uid ?? '', []);
    this.#replace(namespace, uid, change.type === 'deleted' ? [] : entriesOf(object, uid));
  }

  match(namespace: string, subject: string): Recipient[] {
    return this.#trees.get(namespace)?.match(subject) ?? [];
  }

  #replace(namespace: string, uid: string, entries: readonly Entry[]): void {
    const before = this.#entries.get(uid) ?? [];
    if (before.length === 0 && entries.length === 0) return;
    const tree = this.#trees.get(namespace) ?? new SubjectTree<Recipient>();
    for (const { subject, recipient } of before) tree.remove(subject, recipient);
    for (const { subject, recipient } of entries) tree.add(subject, recipient);
    if (entries.length === 0) this.#entries.delete(uid);
    else this.#entries.set(uid, entries);
    if (tree.isEmpty) this.#trees.delete(namespace);
    else this.#trees.set(namespace, tree);
  }
}

function entriesOf({ spec }: Agent, agentUid: string): Entry[] {
  return triggersOf(spec).flatMap(({ name, subject }) =>
    subject === undefined ? [] : [{ subject, recipient: { agentUid, trigger: name } }],
  );
}
