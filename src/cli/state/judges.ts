import { userInfo } from 'node:os';
import { openAudit } from '../../audit/recorded-trail.ts';
import { systemClock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import { printable } from '../../lib/printable.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { lockState } from '../../standalone/lock.ts';
import { stateKeys } from '../../standalone/trust/state-key.ts';
import { trustedKey } from '../../standalone/trust/trust.ts';
import type { JudgeStanding } from '../../tempering/canary/standing.ts';
import { createJudgeStandings, listStandings, recordedStandings } from '../../tempering/canary/standings.ts';
import { resumptionRecord } from '../../tempering/canary/suspension-record.ts';
import { type CliIo, EXIT, writeJsonLine } from '../io.ts';
import { table } from '../table.ts';
import { configFolder } from './config-folder.ts';
import { stateFolder } from './state-folder.ts';

export interface JudgesOptions {
  state: string;
  /** The id of a suspension to lift. */
  resume?: string;
  output: 'text' | 'json';
}

/** Prints what canaries showed about each judge and reviewer, and lifts a suspension. */
export async function judges(options: JudgesOptions, io: CliIo): Promise<number> {
  const folder = await stateFolder(io, options.state);
  const records = fileRecordStore(folder);
  if (options.resume !== undefined) await resume(options.resume, folder, records, io);
  const all = await listStandings(records);
  if (options.output === 'json') for (const standing of all) writeJsonLine(io, summaryOf(standing));
  else if (all.length === 0) io.out('no judge or reviewer was asked about a canary yet\n');
  else io.out(table(['MODEL', 'STATE', 'CAUGHT', 'PASSED', 'SUSPENSION'], all.map(rowOf)));
  return EXIT.ok;
}

/** Throws TEMPER_STATE_LOCKED while `temper run` uses the folder. */
async function resume(id: string, folder: string, records: RecordStore, io: CliIo): Promise<void> {
  const lock = await lockState(folder, 'temper judges --resume');
  try {
    const key = await trustedKey({ folder, records, keys: stateKeys(configFolder(io)) });
    const found = (await listStandings(records)).find(({ suspension }) => suspension?.id === id);
    if (found === undefined)
      throw new TemperError(
        'TEMPER_NOT_FOUND',
        `no judge has the suspension "${printable(id, 80)}"; temper judges lists them`,
      );
    const audit = await openAudit({ records, clock: systemClock, key });
    await audit.append(resumptionRecord(found.model, id, `user/${userInfo().username}`));
    await createJudgeStandings(recordedStandings(records)).lift(found.model, id);
    await audit.flush();
  } finally {
    lock.release();
  }
}

function summaryOf({ model, outcomes, suspension }: JudgeStanding) {
  const caught = outcomes.filter((outcome) => outcome.caught).length;
  return {
    model,
    caught,
    passed: outcomes.length - caught,
    ...(suspension === undefined ? {} : { suspension: { ...suspension } }),
  };
}

function rowOf(standing: JudgeStanding): string[] {
  const { model, caught, passed, suspension } = summaryOf(standing);
  const state = suspension === undefined ? 'in service' : 'suspended';
  return [printable(model, 80), state, String(caught), String(passed), printable(suspension?.id ?? '', 80)];
}
