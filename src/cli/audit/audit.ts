import { checkpointSignature, openAudit } from '../../audit/recorded-trail.ts';
import type { ChainedRecord } from '../../audit/port.ts';
import type { AuditKey, SignatureState } from '../../audit/signature.ts';
import { systemClock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { stateKeys } from '../../standalone/trust/state-key.ts';
import { signatureProblem } from '../../standalone/trust/trust.ts';
import { type CliIo, EXIT, writeJsonLine } from '../io.ts';
import { table } from '../table.ts';
import { adopt } from './adopt.ts';
import { configFolder } from '../state/config-folder.ts';
import { stateFolder } from '../state/state-folder.ts';

export interface AuditOptions {
  subject?: string;
  state: string;
  /** Take the state folder over, without or with its tools. */
  adopt?: boolean;
  withTools?: boolean;
  output: 'text' | 'json';
}

/**
 * Verifies the whole chain, then prints its records. Throws TEMPER_AUDIT_CHAIN_INVALID with the first invalid record. Exit 1 when
 * nothing proves that this user wrote the chain.
 */
export async function audit(options: AuditOptions, io: CliIo): Promise<number> {
  if (options.withTools === true && options.adopt !== true)
    throw new TemperError('TEMPER_USAGE', '--with-tools says what --adopt trusts; give --adopt too, or leave it out');
  const folder = await stateFolder(io, options.state);
  if (options.adopt === true) return adopt({ ...options, folder }, io);
  const records = fileRecordStore(folder);
  const key = await stateKeys(configFolder(io)).find();
  const signature = await checkpointSignature(records, key);
  const all = await verifiedRecords(records, signature === 'valid' ? key : undefined);
  const { subject } = options;
  const chosen = subject === undefined ? all : all.filter((record) => concerns(record, subject));
  if (options.output === 'json') for (const record of chosen) writeJsonLine(io, record);
  else showRecords(chosen, io);
  return showVerdict(all.length, signature, key, options, io);
}

async function verifiedRecords(records: RecordStore, key: AuditKey | undefined): Promise<ChainedRecord[]> {
  const chain = await openAudit({ records, clock: systemClock, ...(key === undefined ? {} : { key }) });
  return chain.records();
}

function showRecords(records: readonly ChainedRecord[], io: CliIo): void {
  const rows = records.map(({ seq, time, action, actor, facts, subject: about }) => [
    String(seq),
    time,
    action,
    actor,
    typeof facts['tool'] === 'string' ? facts['tool'] : about,
    typeof facts['code'] === 'string' ? facts['code'] : '',
  ]);
  if (rows.length > 0) io.out(table(['SEQ', 'TIME', 'ACTION', 'ACTOR', 'SUBJECT', 'CODE'], rows));
}

/** An intact chain proves its order. Only the signature of the user proves who wrote it. */
function showVerdict(
  count: number,
  signature: SignatureState,
  key: AuditKey | undefined,
  { output }: AuditOptions,
  io: CliIo,
): number {
  if (signature === 'valid') {
    if (output === 'text') io.out(`${count} records, chain intact, signed with your key\n`);
    return EXIT.ok;
  }
  const problem = signatureProblem(signature, key !== undefined);
  const verdict = `${count} records in order, but nothing proves that you wrote them: ${problem}`;
  io.error(`${verdict}. Take the state folder over with temper audit --adopt\n`);
  return EXIT.refused;
}

function concerns({ subject, facts }: ChainedRecord, filter: string): boolean {
  return [subject, facts['tool'], facts['session']].includes(filter);
}
