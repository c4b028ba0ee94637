import { digestOf, sha256 } from '../lib/canonical.ts';
import { EMPTY_DIGEST } from './chain.ts';

/** The head that covers a record may have its last record this long after it. */
const SIGNING_DELAY_MS = 2 * 24 * 3_600_000;

/** A record as the stream stores it. */
export interface StreamRecord {
  /** In the stream, without gaps. */
  seq: number;
  subject: string;
  time: Date;
  data: Uint8Array;
}

/** What the chain covers of a record. It says nothing about a record that its reader may not see. */
export interface StreamLink {
  seq: number;
  /** Digest over subject, time and bytes. */
  leaf: string;
  /** When the stream stored the record. Absent for a reader that may not see the record. */
  time?: Date;
}

/** The end of a chain over the records of a stream: everything up to `sequence`. */
export interface StreamHead {
  sequence: number;
  /** Records since the chain began. */
  records: number;
  digest: string;
}

/** A head that was signed and stored outside the stream. */
export interface SignedHead extends StreamHead {
  /** When it was signed, in RFC 3339. */
  time: string;
  /** When the stream stored the last record, in RFC 3339. Absent for a head without records, and in heads of earlier versions. */
  recordedAt?: string;
  /** Id of the key. */
  key: string;
  signature: string;
}

/** What a stream holds, as its server states it. */
export interface StreamBounds {
  firstSequence: number;
  lastSequence: number;
  /** The stream removes records of this age, and no others. */
  maxAgeMs: number;
}

/** Where a stream differs from its signed heads. */
export interface StreamProblem {
  sequence: number;
  problem: string;
}

/** Verifies the signatures of heads. */
export interface HeadVerifier {
  verify(text: string, key: string, signature: string): boolean;
}

/** Signs heads too. */
export interface HeadKeys extends HeadVerifier {
  /** PEM, newest first. */
  readonly publicKeys: readonly string[];
  sign(text: string): { key: string; signature: string };
}

export type StreamVerification = { ok: true; head: StreamHead } | { ok: false; problem: StreamProblem };

/** The head of a chain that begins with the first record that the stream still has. */
export function firstHead({ firstSequence }: StreamBounds): StreamHead {
  return { sequence: Math.max(0, firstSequence - 1), records: 0, digest: EMPTY_DIGEST };
}

export function linkOf({ seq, subject, time, data }: StreamRecord): StreamLink {
  return { seq, time, leaf: digestOf({ subject, time: time.toISOString(), record: sha256(data) }) };
}

export async function* linksOf(records: AsyncIterable<StreamRecord>): AsyncGenerator<StreamLink> {
  for await (const record of records) yield linkOf(record);
}

/** The head after one more record. The digest covers its place, and its leaf its subject, time and bytes. */
function nextHead(last: StreamHead, { seq, leaf }: StreamLink): StreamHead {
  const content = { previous: last.digest, seq, leaf };
  return { sequence: seq, records: last.records + 1, digest: digestOf(content) };
}

export function signHead(
  { sequence, records, digest }: StreamHead,
  { time, recordedAt }: Pick<SignedHead, 'time' | 'recordedAt'>,
  keys: Pick<HeadKeys, 'sign'>,
): SignedHead {
  const head = { sequence, records, digest, time, ...(recordedAt === undefined ? {} : { recordedAt }) };
  return { ...head, ...keys.sign(signedText(head)) };
}

/** The first head from which all later records are still stored; older records have passed their age. */
export function baseOf(heads: readonly SignedHead[], { firstSequence }: StreamBounds): SignedHead | undefined {
  return heads.find(({ sequence }) => sequence >= firstSequence - 1);
}

/** The records that are missing at the start although they are too young to be removed; undefined when there are none. */
export function earlyRemoval(
  heads: readonly SignedHead[],
  { firstSequence, maxAgeMs }: StreamBounds,
  now: Date,
): StreamProblem | undefined {
  const [first] = heads;
  if (first === undefined || first.sequence >= firstSequence - 1) return undefined;
  const covering = heads.find(({ sequence }) => sequence >= firstSequence - 1) ?? heads.at(-1) ?? first;
  if (!isTooYoungToExpire(covering, { maxAgeMs }, now)) return undefined;
  return { sequence: firstSequence - 1, problem: 'was removed before its age' };
}

/**
 * Is the last record of the head too young to have passed its age? The time of the record counts: a chain that begins on an old stream, and
 * a leader that was not running, sign old records late.
 */
export function isTooYoungToExpire(head: SignedHead, { maxAgeMs }: Pick<StreamBounds, 'maxAgeMs'>, now: Date): boolean {
  return !(now.getTime() - Date.parse(recordTime(head)) >= maxAgeMs - SIGNING_DELAY_MS);
}

/** When the last record of the head was stored, as far as the head states it. */
export function recordTime({ time, recordedAt }: Pick<SignedHead, 'time' | 'recordedAt'>): string {
  return recordedAt ?? time;
}

export function isSignedBy(keys: HeadVerifier, head: SignedHead): boolean {
  return keys.verify(signedText(head), head.key, head.signature);
}

/**
 * Compares the records of a stream with the signed heads from `base` on, and returns the head of the last record. The heads are in
 * order, `records` begins after `base`, and no further record is read after the first problem. `onHead` gets the head of each record.
 */
export async function verifyStream(
  base: StreamHead,
  heads: readonly SignedHead[],
  bounds: StreamBounds,
  records: AsyncIterable<StreamLink>,
  keys: HeadVerifier,
  onHead: (head: StreamHead, record: StreamLink) => void = () => undefined,
): Promise<StreamVerification> {
  const before = headsProblem(heads, bounds, keys);
  if (before !== undefined) return { ok: false, problem: before };
  const expected = new Map(heads.map((head) => [head.sequence, head]));
  let head = base;
  for await (const record of records) {
    if (record.seq !== head.sequence + 1) return failed(head.sequence + 1, 'was removed');
    head = nextHead(head, record);
    const signed = expected.get(head.sequence);
    if (signed !== undefined && (signed.digest !== head.digest || signed.records !== head.records))
      return failed(head.sequence, 'or one before it is not the record that was signed');
    onHead(head, record);
  }
  const last = heads.at(-1);
  if (last !== undefined && last.sequence > head.sequence) return failed(head.sequence + 1, 'was removed');
  return { ok: true, head };
}

function headsProblem(
  heads: readonly SignedHead[],
  { lastSequence }: StreamBounds,
  keys: HeadVerifier,
): StreamProblem | undefined {
  for (const [index, head] of heads.entries()) {
    const { sequence } = head;
    if (!isSignedBy(keys, head))
      return { sequence, problem: 'has a head that the key of this installation did not sign' };
    const previous = heads[index - 1];
    const isInOrder = previous === undefined || (previous.sequence < sequence && previous.records < head.records);
    if (!isInOrder) return { sequence, problem: 'has a head that does not follow the head before it' };
    if (sequence > lastSequence)
      return {
        sequence,
        problem: `was signed, and the stream ends at ${lastSequence}; its end was cut off or an old copy was restored`,
      };
  }
  return undefined;
}

function signedText({ sequence, records, digest, time, recordedAt }: Omit<SignedHead, 'key' | 'signature'>): string {
  const content = `${sequence}\n${records}\n${digest}\n${time}`;
  return recordedAt === undefined
    ? `temper audit stream head 1\n${content}`
    : `temper audit stream head 2\n${content}\n${recordedAt}`;
}

function failed(sequence: number, problem: string): StreamVerification {
  return { ok: false, problem: { sequence, problem } };
}
