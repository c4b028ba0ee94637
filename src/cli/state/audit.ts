import { openAudit } from '../../audit/recorded-trail.ts';
import type { ChainedRecord } from '../../audit/port.ts';
import { systemClock } from '../../lib/clock.ts';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import { type CliIo, EXIT, writeJsonLine } from '../io.ts';
import { table } from '../table.ts';
import { stateFolder } from './state-folder.ts';

export interface AuditOptions {
  subject?: string;
  state: string;
  output: 'text' | 'json';
}

/** Verifies the whole chain, then prints its records. Throws TEMPER_AUDIT_CHAIN_INVALID with the first invalid record. */
export async function audit(options: AuditOptions, io: CliIo): Promise<number> {
  const chain = await openAudit({ records: fileRecordStore(await stateFolder(io, options.state)), clock: systemClock });
  const all = await chain.records();
  const { subject } = options;
  const chosen = subject === undefined ? all : all.filter((record) => concerns(record, subject));
  if (options.output === 'json') {
    for (const record of chosen) writeJsonLine(io, record);
    return EXIT.ok;
  }
  const rows = chosen.map(({ seq, time, action, actor, facts, subject: about }) => [
    String(seq),
    time,
    action,
    actor,
    typeof facts['tool'] === 'string' ? facts['tool'] : about,
    typeof facts['code'] === 'string' ? facts['code'] : '',
  ]);
  if (rows.length > 0) io.out(table(['SEQ', 'TIME', 'ACTION', 'ACTOR', 'SUBJECT', 'CODE'], rows));
  io.out(`${all.length} records, chain intact\n`);
  return EXIT.ok;
}

function concerns({ subject, facts }: ChainedRecord, filter: string): boolean {
  return [subject, facts['tool'], facts['session']].includes(filter);
}
