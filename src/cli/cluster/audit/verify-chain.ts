import { type KnownHeadState, knownHeadProblem, knownHeadState, withKnownHead } from '../../../audit/known-head.ts';
import {
  baseOf,
  earlyRemoval,
  type HeadVerifier,
  type SignedHead,
  type StreamHead,
  type StreamProblem,
  verifyStream,
} from '../../../audit/stream-chain.ts';
import { type PagedRecord, readBounds, readLinks, type ReadPage } from './audit-pages.ts';

export type ChainVerdict =
  | {
      readonly ok: true;
      /** Records of the installation since the first kept head. */
      readonly records: number;
      readonly from: number;
      readonly through: number;
      readonly signed: SignedHead;
      /** Of the head that was kept elsewhere; absent without one. */
      readonly known?: KnownHeadState;
    }
  | { readonly ok: false; readonly problem: StreamProblem };

interface SignedChain {
  readonly heads: readonly SignedHead[];
  readonly verifier: HeadVerifier;
  readonly now: Date;
  /** A head that was kept outside of the cluster. */
  readonly known?: SignedHead | undefined;
}

/**
 * Compares the records that a gateway sends with the heads that the operator signed and stored elsewhere. `onRecord` gets the records of
 * the namespace in their order, also those of a chain that fails later.
 */
export async function verifyCluster(
  { heads: stored, verifier, now, known }: SignedChain,
  read: ReadPage,
  onRecord: (record: PagedRecord) => void,
): Promise<ChainVerdict> {
  const bounds = await readBounds(read);
  const contradiction = known === undefined ? undefined : knownHeadProblem(known, stored, bounds, now);
  const heads = known === undefined ? stored : withKnownHead(stored, known);
  const early = contradiction ?? earlyRemoval(heads, bounds, now);
  if (early !== undefined) return { ok: false, problem: early };
  const signed = heads.at(-1);
  const base: StreamHead | undefined = baseOf(heads, bounds) ?? signed;
  if (base === undefined || signed === undefined) {
    return { ok: false, problem: { sequence: bounds.lastSequence, problem: 'has no signed head' } };
  }
  const range = { after: base.sequence, through: bounds.lastSequence };
  const verification = await verifyStream(base, heads, bounds, readLinks(read, range, onRecord), verifier);
  if (!verification.ok) return verification;
  const { head } = verification;
  return {
    ok: true,
    records: head.records - base.records,
    from: base.sequence + 1,
    through: head.sequence,
    signed,
    ...(known === undefined ? {} : { known: knownHeadState(known, stored, bounds) }),
  };
}
