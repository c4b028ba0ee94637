import { headMembers } from '../../../audit/known-head.ts';
import type { SignedHead } from '../../../audit/stream-chain.ts';
import { printable } from '../../../lib/printable.ts';
import { type CliIo, EXIT, writeJsonLine } from '../../io.ts';
import type { ChainVerdict } from './verify-chain.ts';

/** Whether records before the first one that a gateway sends should still exist is its word. */
const UNPROVEN_BOUNDS =
  'note: the gateway states where the records begin, and at what age they are removed; --head FILE proves that no record after a head of yours is missing\n';

/** Prints the verdict; as JSON only without the life of a tool, which has a form of its own. */
export function showVerdict(
  { records, from, through, signed, known }: ChainVerdict & { ok: true },
  own: number,
  { output, isLife, location }: { output: 'text' | 'json'; isLife: boolean; location: string },
  io: CliIo,
): void {
  if (output === 'json') {
    if (!isLife)
      writeJsonLine(io, {
        intact: true,
        records,
        own,
        from,
        through,
        signedUpTo: signed.sequence,
        signedAt: signed.time,
        head: headMembers(signed),
        ...(known === undefined ? { boundsStatedBy: 'gateway' } : { givenHead: known }),
      });
    return;
  }
  const unsigned = through - signed.sequence;
  const tail = unsigned > 0 ? `; ${unsigned} later records have no signed head yet` : '';
  io.out(
    `${records} records, ${own} of them of ${location}, chain intact from ${from} to ${through}, signed up to ${signed.sequence} at ${printable(signed.time, 40)}${tail}\n`,
  );
  if (known === undefined) io.out(UNPROVEN_BOUNDS);
}

/** A head that nothing can be compared with proves nothing, so that a caller must not take it for a success. */
export function showKnownHead(
  { sequence, time }: SignedHead,
  { known, from }: ChainVerdict & { ok: true },
  output: 'text' | 'json',
  io: CliIo,
): number {
  const about = `the head of record ${sequence}, signed at ${printable(time, 40)}`;
  if (known === 'verified') {
    if (output === 'text') io.out(`${about}, lies on this chain\n`);
    return EXIT.ok;
  }
  io.error(
    `${about}, is older than the kept records, which begin at ${from}: nothing proves that it lies on this chain. Give a newer head\n`,
  );
  return EXIT.refused;
}
