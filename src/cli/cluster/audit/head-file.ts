import { parseKnownHead } from '../../../audit/known-head.ts';
import { type HeadVerifier, isSignedBy, type SignedHead } from '../../../audit/stream-chain.ts';
import { TemperError } from '../../../lib/errors.ts';
import { printable } from '../../../lib/printable.ts';
import { readInputFile } from '../../input/input-files.ts';
import type { CliIo } from '../../io.ts';

/** The head of `--head`. Throws TEMPER_USAGE for a file without one, and for a checkpoint of a state folder. */
export async function readHeadFile(file: string, io: CliIo): Promise<SignedHead> {
  const known = parseKnownHead(await readInputFile(file, '--head', io));
  if (known !== undefined && known !== 'checkpoint') return known;
  const problem =
    known === 'checkpoint'
      ? 'is the checkpoint of a state folder; give it to temper audit verify --state'
      : 'has no signed head; give a copy of audit-head.jsonl, or of the member head that audit verify --output json prints';
  throw new TemperError('TEMPER_USAGE', `--head ${printable(file, 400)} ${problem}`);
}

/** Throws TEMPER_AUDIT_CHAIN_INVALID when none of the keys signed the head: it may be of another cluster, or this one was replaced. */
export function assertSigned(known: SignedHead, verifier: HeadVerifier, keys: string | undefined): void {
  if (isSignedBy(verifier, known)) return;
  const trusted = keys === undefined ? 'the public keys of this cluster' : `--keys ${printable(keys, 400)}`;
  throw new TemperError(
    'TEMPER_AUDIT_CHAIN_INVALID',
    `none of ${trusted} signed the head of record ${known.sequence} in --head (key ${printable(known.key, 64)}); the file was edited or is of another cluster, or the keys were replaced: give the keys of that time with --keys`,
  );
}
