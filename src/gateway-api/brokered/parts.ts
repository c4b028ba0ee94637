/** Bodies of JSON and bytes: 4 bytes with the length of the JSON, big-endian, the JSON, and then the bytes. */
export const PARTS_TYPE = 'application/vnd.temper.parts';

/** Of the JSON of a call. */
const MAX_JSON_BYTES = 1_048_576;
/** Of the bytes: what a pod reads of a repository, and what it pushes. */
const MAX_ATTACHMENT_BYTES = 3 * 1_048_576;
const LENGTH_BYTES = 4;
export const MAX_PARTS_BYTES = LENGTH_BYTES + MAX_JSON_BYTES + MAX_ATTACHMENT_BYTES;

export interface Parts {
  /** The text of the JSON, not parsed. */
  readonly json: Buffer;
  readonly bytes: Buffer;
}

export function encodeParts(json: object, bytes: Buffer): Buffer {
  const text = Buffer.from(JSON.stringify(json));
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32BE(text.length);
  return Buffer.concat([length, text, bytes]);
}

/** Parts of the body, which are not copied. Undefined for a body that is not in this form, or has more than either part may have. */
export function decodeParts(body: Buffer): Parts | undefined {
  if (body.length < LENGTH_BYTES) return undefined;
  const end = LENGTH_BYTES + body.readUInt32BE(0);
  const isWithin = end <= body.length && end <= LENGTH_BYTES + MAX_JSON_BYTES;
  if (!isWithin || body.length - end > MAX_ATTACHMENT_BYTES) return undefined;
  return { json: body.subarray(LENGTH_BYTES, end), bytes: body.subarray(end) };
}
