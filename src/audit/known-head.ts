import { isJsonObject, type Json, type JsonObject, parseUntrustedJson } from '../lib/json.ts';
import { isSignedHead } from './signed-heads.ts';
import { isTooYoungToExpire, type SignedHead, type StreamBounds, type StreamProblem } from './stream-chain.ts';

/** What a head from outside of the cluster says about its records: they lie on the chain, or they have passed their age. */
export type KnownHeadState = 'verified' | 'expired';

/** A copy of one signed head. `checkpoint`: a copy of the checkpoint of a state folder. Undefined for any other text. */
export function parseKnownHead(text: string): SignedHead | 'checkpoint' | undefined {
  const value = jsonIn(text);
  if (value === undefined) return undefined;
  if (isSignedHead(value)) return value as unknown as SignedHead;
  return isJsonObject(value) && typeof value['seq'] === 'number' ? 'checkpoint' : undefined;
}

/** One line, which `parseKnownHead` reads. */
export function knownHeadText(head: SignedHead): string {
  return `${JSON.stringify(headMembers(head))}\n`;
}

/** The head without what else its source has. */
export function headMembers(head: SignedHead): JsonObject {
  const { sequence, records, digest, time, recordedAt, key, signature } = head;
  return { sequence, records, digest, time, ...(recordedAt === undefined ? {} : { recordedAt }), key, signature };
}

/**
 * What the stored heads and the bounds of the stream already contradict. The records decide the rest: `verifyStream` compares them with
 * `withKnownHead`.
 */
export function knownHeadProblem(
  known: SignedHead,
  heads: readonly SignedHead[],
  bounds: StreamBounds,
  now: Date,
): StreamProblem | undefined {
  const { sequence, records, digest } = known;
  const stored = heads.find((head) => head.sequence === sequence);
  if (stored !== undefined && (stored.digest !== digest || stored.records !== records))
    return { sequence, problem: 'has another signed head than the given one; the chain was replaced or restarted' };
  const isGone = records > 0 && sequence < bounds.firstSequence;
  return isGone && isTooYoungToExpire(known, bounds, now)
    ? { sequence, problem: 'was removed before its age' }
    : undefined;
}

/** The known head at its place among the stored ones, whose own order stays to be verified. A stored copy of it stands for it. */
export function withKnownHead(heads: readonly SignedHead[], known: SignedHead): SignedHead[] {
  if (heads.some(({ sequence }) => sequence === known.sequence)) return [...heads];
  const next = heads.findIndex(({ sequence }) => sequence > known.sequence);
  return heads.toSpliced(next === -1 ? heads.length : next, 0, known);
}

/** `expired` also when no stored head is new enough to be compared with it. */
export function knownHeadState(
  { sequence }: SignedHead,
  heads: readonly SignedHead[],
  { firstSequence }: StreamBounds,
): KnownHeadState {
  const isKept = (of: number): boolean => of >= firstSequence - 1;
  return isKept(sequence) && heads.some((head) => isKept(head.sequence)) ? 'verified' : 'expired';
}

function jsonIn(text: string): Json | undefined {
  try {
    return parseUntrustedJson(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
