import { printable } from '../../lib/printable.ts';
import { gitFailure } from '../failure.ts';

/** A packet of Git's protocol; `payload` is undefined for one without data, which ends a list or a section. */
export interface Packet {
  readonly payload: Buffer | undefined;
}

const HEADER_BYTES = 4;
const MAX_PAYLOAD_BYTES = 65_516;
export const FLUSH = Buffer.from('0000');
export const DELIMITER = Buffer.from('0001');
/** Flush, delimiter and end of response. */
const WITHOUT_DATA: ReadonlySet<number> = new Set([0, 1, 2]);

/** A packet with a text. */
export function packet(text: string): Buffer {
  const payload = Buffer.from(text);
  if (payload.length > MAX_PAYLOAD_BYTES) throw new RangeError('a packet has at most 65,516 bytes');
  return Buffer.concat([Buffer.from((payload.length + HEADER_BYTES).toString(16).padStart(4, '0')), payload]);
}

/** The packets of a body, one at a time. Throws for a length that is none, or that leads beyond the body. */
export function* packetsOf(body: Buffer): Generator<Packet> {
  let offset = 0;
  while (offset < body.length) {
    const digits = body.toString('latin1', offset, offset + HEADER_BYTES);
    if (!/^[0-9a-f]{4}$/i.test(digits)) throw notGit();
    const length = Number.parseInt(digits, 16);
    const size = WITHOUT_DATA.has(length) ? HEADER_BYTES : length;
    if (size < HEADER_BYTES || offset + size > body.length) throw notGit();
    yield { payload: WITHOUT_DATA.has(length) ? undefined : body.subarray(offset + HEADER_BYTES, offset + size) };
    offset += size;
  }
}

/** The text of a packet without the line break at its end. Throws with what the server says when it reports an error. */
export function lineOf(payload: Buffer): string {
  const text = payload.toString('utf8').replace(/\n$/, '');
  if (text.startsWith('ERR ')) throw gitFailure(`the server refuses: ${printable(text.slice(4), 300)}`);
  return text;
}

function notGit(): Error {
  return gitFailure('the answer of the server is not in the form of Git');
}
