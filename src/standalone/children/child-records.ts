import type { Agent } from '../../api/v1alpha1/agent.ts';
import { isJsonObject, type Json, textAt } from '../../lib/json.ts';
import type { RecordStore } from '../../lib/record-store.ts';

/** A child agent of a state folder. */
export interface ChildRecord {
  /** The key of the agent that started it. */
  readonly parent: string;
  readonly agent: Agent;
  /** RFC 3339: it was ended, and what it stored may not be deleted yet. */
  readonly endedAt?: string;
}

const collectionOf = (namespace: string): string => `children/${namespace}`;
/** A call that ended a child may be repeated after a crash, and finds it ended. */
const ENDED_MS = 24 * 3_600_000;

export async function storeChild(records: RecordStore, namespace: string, child: ChildRecord): Promise<void> {
  await records.put(collectionOf(namespace), child.agent.metadata.name, child as unknown as Json);
}

/** The children of the namespace, living and ended; those that ended long ago are deleted. Documents of another form are left out. */
export async function storedChildren(records: RecordStore, namespace: string, now: number): Promise<ChildRecord[]> {
  const found: ChildRecord[] = [];
  for (const { name, value } of await records.list(collectionOf(namespace))) {
    const child = parseChild(value);
    const isOld = child?.endedAt !== undefined && now - Date.parse(child.endedAt) > ENDED_MS;
    if (isOld) await records.delete(collectionOf(namespace), name);
    else if (child !== undefined) found.push(child);
  }
  return found;
}

/** A run wrote it from an admitted manifest, so its form is checked as far as it decides. */
function parseChild(value: Json): ChildRecord | undefined {
  const isChild =
    isJsonObject(value) && textAt(value, ['parent']) !== '' && textAt(value, ['agent', 'metadata', 'name']) !== '';
  return isChild ? (value as unknown as ChildRecord) : undefined;
}
