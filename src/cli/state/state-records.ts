import { fileRecordStore } from '../../lib/file-record-store.ts';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import type { CliIo } from '../io.ts';
import { nounOf } from '../objects/kinds.ts';
import { stateFolder } from './state-folder.ts';

/**
 * The records of a state folder, to be read. Throws TEMPER_STATE_NOT_FOUND when there is no such folder, because an empty list would
 * look like a result.
 */
export async function openStateRecords(state: string, io: CliIo): Promise<RecordStore> {
  return fileRecordStore(await stateFolder(io, state));
}

export function notFound(collection: string, name: string, known: readonly { name: string }[]): TemperError {
  const names = known.slice(0, 10).map((record) => record.name);
  const hint = names.length === 0 ? 'there are none' : `there are: ${names.join(', ')}`;
  return new TemperError('TEMPER_NOT_FOUND', `no ${nounOf(collection)} named "${printable(name, 253)}"; ${hint}`);
}

/**
 * Throws TEMPER_NOT_FOUND with the names that exist, because an empty answer about a mistyped name would look like a result. A name exists
 * when the folder has its manifest, or other records of it.
 */
export async function assertExists(
  records: RecordStore,
  collection: 'agents' | 'trustpolicies',
  name: string,
  others: readonly string[],
): Promise<void> {
  const stored = await records.list(collection);
  const known = [...new Set([...stored.map((record) => record.name), ...others])];
  if (known.includes(name)) return;
  throw notFound(
    collection,
    name,
    known.map((other) => ({ name: other })),
  );
}
