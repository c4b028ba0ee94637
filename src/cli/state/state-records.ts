import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { hasErrno, TemperError } from '../../lib/errors.ts';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import { printable } from '../../lib/printable.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import type { CliIo } from '../io.ts';

/** The records of a state folder, to be read. Throws TEMPER_USAGE when there is no such folder: an empty answer would look like an answer. */
export async function openStateRecords(state: string, io: CliIo): Promise<RecordStore> {
  const path = resolve(io.cwd, state);
  const shown = printable(state, 200);
  const info = await stat(path).catch((error: unknown) => {
    const isMissing = hasErrno(error, 'ENOENT') || hasErrno(error, 'ENOTDIR');
    const message = isMissing
      ? `the state folder ${shown} does not exist; temper run creates it, --state names another`
      : `the state folder ${shown} cannot be read; check its permissions`;
    throw new TemperError('TEMPER_USAGE', message, { cause: error });
  });
  if (info.isDirectory()) return fileRecordStore(path);
  throw new TemperError('TEMPER_USAGE', `the state folder ${shown} is not a folder; --state names another`);
}
