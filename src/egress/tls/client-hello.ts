/** Reads the first message of a TLS client (RFC 8446, 4.1.2): what it says about the server that it wants. Decrypts nothing. */
import { ByteReader, OutOfBytes } from './byte-reader.ts';

export interface ClientHello {
  /** In lower case; undefined when the client names no server. */
  serverName: string | undefined;
  /**
   * The client also sends an encrypted ClientHello, whose name only the server can read; `serverName` is then the name of the
   * server that decrypts it. A client that sends a meaningless one (GREASE) looks the same.
   */
  encrypted: boolean;
}

/** `more`: the bytes are the beginning of a ClientHello. */
export type ClientHelloResult = { hello: ClientHello } | { invalid: string } | 'more';

/** The most bytes to read before a ClientHello is complete. Real ones have at most a few thousand. */
export const MAX_CLIENT_HELLO_BYTES = 16_384;

const RECORD_HEADER_BYTES = 5;
const HANDSHAKE_HEADER_BYTES = 4;
const MAX_RECORD_BYTES = 16_384;
/** A client may split the message over records; none needs many. */
const MAX_RECORDS = 8;
const HANDSHAKE_RECORD = 22;
const CLIENT_HELLO = 1;
const HOST_NAME = 0;
const EXTENSIONS = { serverName: 0, encryptedClientHello: 0xfe_0d } as const;
/** Labels of letters, digits, hyphens and underscores, without a final dot. */
const SERVER_NAME = /^[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*$/;

/** Reads a ClientHello from the bytes that a client sent first. Call it again with more bytes after `more`. */
export function readClientHello(bytes: Buffer): ClientHelloResult {
  const message = handshakeMessage(bytes);
  if (!Buffer.isBuffer(message)) {
    return message === 'more' && bytes.length >= MAX_CLIENT_HELLO_BYTES ? invalid('it is too long') : message;
  }
  try {
    return parseBody(new ByteReader(message));
  } catch (error) {
    if (error instanceof OutOfBytes) return invalid('it ends in the middle of a member');
    throw error;
  }
}

/** The body of the handshake message that the records contain. */
function handshakeMessage(bytes: Buffer): Buffer | { invalid: string } | 'more' {
  const fragments: Buffer[] = [];
  let collected = 0;
  let at = 0;
  for (let records = 0; ; records += 1) {
    if (records >= MAX_RECORDS) return invalid('it is split over too many records');
    const problem = recordProblem(bytes, at);
    if (problem !== undefined) return invalid(problem);
    if (bytes.length < at + RECORD_HEADER_BYTES) return 'more';
    const end = at + RECORD_HEADER_BYTES + bytes.readUInt16BE(at + 3);
    const fragment = bytes.subarray(at + RECORD_HEADER_BYTES, end);
    fragments.push(fragment);
    collected += fragment.length;
    const message = completeMessage(fragments, collected);
    if (message !== 'more') return message;
    if (bytes.length < end) return 'more';
    at = end;
  }
}

/** What makes the record at this place no part of a ClientHello, as far as its header has arrived. */
function recordProblem(bytes: Buffer, at: number): string | undefined {
  const [type, major] = [bytes[at], bytes[at + 1]];
  if (type !== undefined && type !== HANDSHAKE_RECORD) return 'the connection does not start with a TLS handshake';
  if (major !== undefined && major !== 3) return 'its version is not one of TLS';
  if (bytes.length < at + RECORD_HEADER_BYTES) return undefined;
  const length = bytes.readUInt16BE(at + 3);
  return length === 0 || length > MAX_RECORD_BYTES ? 'a record has a length that TLS does not allow' : undefined;
}

function completeMessage(fragments: readonly Buffer[], collected: number): Buffer | { invalid: string } | 'more' {
  if (collected < HANDSHAKE_HEADER_BYTES) return 'more';
  const message = Buffer.concat(fragments);
  if (message[0] !== CLIENT_HELLO) return invalid('the first message is not a ClientHello');
  const length = message.readUIntBE(1, 3);
  if (length > MAX_CLIENT_HELLO_BYTES - HANDSHAKE_HEADER_BYTES) return invalid('it is too long');
  const end = HANDSHAKE_HEADER_BYTES + length;
  if (message.length < end) return 'more';
  return message.length > end
    ? invalid('another message follows it in the same record')
    : message.subarray(HANDSHAKE_HEADER_BYTES);
}

function parseBody(body: ByteReader): ClientHelloResult {
  body.skip(2 + 32);
  body.vector(1);
  body.vector(2);
  body.vector(1);
  const extensions = new Map<number, ByteReader>();
  if (!body.isAtEnd) {
    const all = body.vector(2);
    while (!all.isAtEnd) {
      const type = all.integer(2);
      if (extensions.has(type)) return invalid('it has an extension twice');
      extensions.set(type, all.vector(2));
    }
  }
  if (!body.isAtEnd) return invalid('bytes follow its extensions');
  const encrypted = extensions.has(EXTENSIONS.encryptedClientHello);
  const named = extensions.get(EXTENSIONS.serverName);
  if (named === undefined) return { hello: { serverName: undefined, encrypted } };
  const serverName = hostName(named);
  return serverName === undefined
    ? invalid('its server name is not one host name')
    : { hello: { serverName, encrypted } };
}

/** The one host name of the extension `server_name` (RFC 6066, 3). */
function hostName(extension: ByteReader): string | undefined {
  const list = extension.vector(2);
  const type = list.integer(1);
  const name = list.vector(2).rest().toString('latin1');
  const isOnly = list.isAtEnd && extension.isAtEnd && type === HOST_NAME;
  return isOnly && name.length <= 253 && SERVER_NAME.test(name) ? name.toLowerCase() : undefined;
}

function invalid(reason: string): { invalid: string } {
  return { invalid: reason };
}
