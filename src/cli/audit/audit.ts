import { checkpointSignature, openAudit, parseCheckpoint } from '../../audit/recorded-trail.ts';
import { parseKnownHead } from '../../audit/known-head.ts';
import type { ChainedRecord, Checkpoint } from '../../audit/port.ts';
import type { AuditKey, SignatureState } from '../../audit/signature.ts';
import { systemClock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import { printable } from '../../lib/printable.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { stateKeys } from '../../standalone/trust/state-key.ts';
import { signatureProblem } from '../../standalone/trust/trust.ts';
import { type CliIo, EXIT, writeJsonLine } from '../io.ts';
import { table } from '../table.ts';
import { readInputFile } from '../input/input-files.ts';
import { adopt } from './adopt.ts';
import { showToolLife } from './audit-show.ts';
import { assertSubject, recordsOf } from './audit-subject.ts';
import { configFolder } from '../state/config-folder.ts';
import { stateFolder } from '../state/state-folder.ts';

export interface AuditOptions {
  subject?: string;
  state: string;
  /** Take the state folder over, without or with its tools. */
  adopt?: boolean;
  withTools?: boolean;
  /** What to print: the records, the life of one tool, or only the verdict about the chain. */
  view?: 'records' | 'life' | 'verdict';
  /** The name or digest of the tool whose life to print. */
  tool?: string;
  /** A copy of `audit/head.json` that was kept elsewhere. */
  head?: string;
  /** Public keys, which only a cluster has. */
  keys?: string;
  output: 'text' | 'json';
}

/**
 * Verifies the whole chain, then prints its records. Throws TEMPER_AUDIT_CHAIN_INVALID with the first invalid record. Exit 1 when
 * nothing proves that this user wrote the chain.
 */
export async function audit(options: AuditOptions, io: CliIo): Promise<number> {
  if (options.withTools === true && options.adopt !== true)
    throw new TemperError('TEMPER_USAGE', '--with-tools says what --adopt trusts; give --adopt too, or leave it out');
  if (options.keys !== undefined)
    throw new TemperError(
      'TEMPER_USAGE',
      '--keys is for a cluster: your own key signs the chain of a state folder; leave it out, or name a cluster with --context',
    );
  const folder = await stateFolder(io, options.state);
  if (options.adopt === true) return adopt({ ...options, folder }, io);
  const records = fileRecordStore(folder);
  const key = await stateKeys(configFolder(io)).find();
  const signature = await checkpointSignature(records, key);
  const known = options.head === undefined ? undefined : await readCheckpoint(options.head, io);
  const all = await verifiedRecords(records, signature === 'valid' ? key : undefined, known);
  if (options.view === 'life') showToolLife(all, options.tool ?? '', options.output, io);
  else if (options.view !== 'verdict') await printRecords(all, records, options, io);
  return showVerdict(all.length, signature, key, options, io);
}

async function printRecords(
  all: readonly ChainedRecord[],
  records: RecordStore,
  options: AuditOptions,
  io: CliIo,
): Promise<void> {
  const { subject } = options;
  const chosen = subject === undefined ? all : recordsOf(all, subject);
  if (subject !== undefined && chosen.length === 0) {
    await assertSubject(all, subject, records);
    if (options.output === 'text') io.out(`No records of "${printable(subject, 80)}".\n`);
  }
  if (options.output === 'json') for (const record of chosen) writeJsonLine(io, record);
  else showRecords(chosen, io);
}

/** Throws TEMPER_USAGE for a file that is not a checkpoint, also for a signed head of a cluster. */
async function readCheckpoint(file: string, io: CliIo): Promise<Checkpoint> {
  const text = await readInputFile(file, '--head', io);
  const known = parseCheckpoint(text);
  if (known !== undefined) return known;
  const problem =
    parseKnownHead(text) === undefined
      ? 'is not a checkpoint; give a copy of audit/head.json'
      : 'is a signed head of a cluster; name the cluster with --context, or give a copy of audit/head.json';
  throw new TemperError('TEMPER_USAGE', `--head ${printable(file)} ${problem}`);
}

async function verifiedRecords(
  records: RecordStore,
  key: AuditKey | undefined,
  known: Checkpoint | undefined,
): Promise<ChainedRecord[]> {
  const chain = await openAudit({
    records,
    clock: systemClock,
    ...(key === undefined ? {} : { key }),
    ...(known === undefined ? {} : { known }),
  });
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
  const records = `${count} record${count === 1 ? '' : 's'}`;
  if (signature === 'valid') {
    if (output === 'text') io.out(`${records}, chain intact, signed with your key\n`);
    return EXIT.ok;
  }
  const problem = signatureProblem(signature, key !== undefined);
  const verdict = `${records} in order, but nothing proves that you wrote them: ${problem}`;
  io.error(`${verdict}. Take the state folder over with temper audit --adopt\n`);
  return EXIT.refused;
}
