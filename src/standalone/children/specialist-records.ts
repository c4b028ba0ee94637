import { isJsonObject, type Json, textAt } from '../../lib/json.ts';
import type { RecordStore } from '../../lib/record-store.ts';

/** A specialist that an agent asked for. */
export interface SpecialistRecord {
  readonly name: string;
  /** The key of the agent that asked, and the message that it worked on. */
  readonly parent: string;
  readonly message: string;
  /** Why the judge refused it; absent for one that was accepted. */
  readonly refused?: string;
  /** RFC 3339. */
  readonly time: string;
}

const collectionOf = (namespace: string): string => `specialists/${namespace}`;
/** Longer than the chain of messages in which a call can be repeated. */
const MAX_AGE_MS = 24 * 3_600_000;

/** `id`: of the call, so that a repeated call asks no judge. */
export async function storeSpecialist(
  records: RecordStore,
  namespace: string,
  id: string,
  specialist: SpecialistRecord,
): Promise<void> {
  await records.put(collectionOf(namespace), id, specialist as unknown as Json);
}

export async function readSpecialist(
  records: RecordStore,
  namespace: string,
  id: string,
): Promise<SpecialistRecord | undefined> {
  return parse(await records.get(collectionOf(namespace), id));
}

/** The specialists that an agent asked for in one message. Deletes records of calls that nothing repeats any more. */
export async function specialistsOf(
  records: RecordStore,
  { namespace, parent, message }: { namespace: string; parent: string; message: string },
  now: number,
): Promise<SpecialistRecord[]> {
  const found: SpecialistRecord[] = [];
  for (const { name, value } of await records.list(collectionOf(namespace))) {
    const specialist = parse(value);
    const isOld = specialist === undefined || now - Date.parse(specialist.time) > MAX_AGE_MS;
    if (isOld) await records.delete(collectionOf(namespace), name);
    else if (specialist.parent === parent && specialist.message === message) found.push(specialist);
  }
  return found;
}

function parse(value: Json | undefined): SpecialistRecord | undefined {
  const isRecord = isJsonObject(value) && textAt(value, ['name']) !== '' && textAt(value, ['parent']) !== '';
  return isRecord ? (value as unknown as SpecialistRecord) : undefined;
}
