import { fileRecordStore } from '../../lib/file-record-store.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import type { CliIo } from '../io.ts';
import { stateFolder } from './state-folder.ts';

/**
 * The records of a state folder, to be read. Throws TEMPER_STATE_NOT_FOUND when there is no such folder, because an empty list would
 * look like a result.
 */
export async function openStateRecords(state: string, io: CliIo): Promise<RecordStore> {
  return fileRecordStore(await stateFolder(io, state));
}
