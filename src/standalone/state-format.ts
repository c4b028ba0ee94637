import { TemperError } from '../lib/errors.ts';
import { member } from '../lib/json.ts';
import type { RecordStore } from '../lib/record-store.ts';
import { SESSIONS } from '../tools/session-path.ts';

/** The format that this version reads and writes. Format 1 had no mark, and its sessions did not name their agent. */
const STATE_FORMAT = 2;
const COLLECTION = 'state';
const NAME = 'format';

/**
 * Marks a new state folder with the format of this version. Throws TEMPER_STATE_FORMAT for a folder of another format, whose records
 * would be misread: a newer version wrote it, or it has sessions of format 1. A folder of format 1 without sessions is taken over.
 */
export async function ensureStateFormat(records: RecordStore, folder: string): Promise<void> {
  const mark = await records.get(COLLECTION, NAME);
  if (mark === undefined) {
    await refuseFirstFormat(records, folder);
    await records.put(COLLECTION, NAME, { version: STATE_FORMAT });
    return;
  }
  const version = member(mark, 'version');
  if (version === STATE_FORMAT) return;
  throw new TemperError(
    'TEMPER_STATE_FORMAT',
    `${folder} has state format ${JSON.stringify(version ?? null)} and this version reads format ${STATE_FORMAT}; use the version that wrote it, or another --state`,
  );
}

async function refuseFirstFormat(records: RecordStore, folder: string): Promise<void> {
  const sessions = await records.list(SESSIONS);
  const [first] = sessions.filter(({ value }) => typeof member(value, 'agent') !== 'string');
  if (first === undefined) return;
  throw new TemperError(
    'TEMPER_STATE_FORMAT',
    `${folder} has sessions of an earlier version, which do not name their agent, such as "${first.name}"; move ${folder}/${SESSIONS} away to keep the tools and the memory and start new sessions, or use another --state`,
  );
}
