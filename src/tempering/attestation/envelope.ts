import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { TemperError } from '../../lib/errors.ts';
import { isJsonObject, type Json, type JsonObject, jsonExcess, parseUntrustedJson } from '../../lib/json.ts';

const PAYLOAD_TYPE = 'application/vnd.in-toto+json';
const MAX_CHARACTERS = 512 * 1_024;
const LIMITS = { values: 20_000, depth: 32 };
const MAX_SIGNATURES = 10;
const MAX_TRUSTED_KEYS = 10;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
/** PKCS #8 around the 32 bytes of an Ed25519 key (RFC 8410). */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');

/** An Ed25519 key that signs attestations. */
export interface AttestationKey {
  /** SHA-256 of the public key in DER. */
  readonly id: string;
  readonly publicPem: string;
  sign(data: Buffer): Buffer;
}

/** `seed`: 32 secret bytes. */
export function createAttestationKey(seed: Uint8Array): AttestationKey {
  return attestationKeyOf(createPrivateKey({ key: Buffer.concat([PKCS8_PREFIX, seed]), format: 'der', type: 'pkcs8' }));
}

/** `pem`: a private Ed25519 key. */
export function readAttestationKey(pem: string): AttestationKey {
  return attestationKeyOf(createPrivateKey(pem));
}

function attestationKeyOf(key: KeyObject): AttestationKey {
  const publicKey = createPublicKey(key);
  const publicPem = publicKey.export({ type: 'spki', format: 'pem' });
  return { id: keyId(publicKey), publicPem, sign: (data) => sign(null, data, key) };
}

/** The DSSE envelope of a statement, as JSON text. */
export function sealStatement(statement: JsonObject, key: AttestationKey): string {
  const payload = Buffer.from(JSON.stringify(statement));
  const signature = key.sign(signedBytes(payload)).toString('base64');
  const envelope = {
    payloadType: PAYLOAD_TYPE,
    payload: payload.toString('base64'),
    signatures: [{ keyid: key.id, sig: signature }],
  };
  return `${JSON.stringify(envelope, null, 1)}\n`;
}

/**
 * The statement of an envelope that a trusted key signed; `trustedPem` has one public key, or those of one signer before and after its
 * rotations. Nothing of the statement is parsed before. Throws TEMPER_ATTESTATION_INVALID.
 */
export function openEnvelope(text: string, trustedPem: string): JsonObject {
  const trusted = readTrustedKeys(trustedPem);
  const envelope = parseObject(text, 'the attestation');
  const { payloadType, payload, signatures } = envelope;
  if (payloadType !== PAYLOAD_TYPE) throw invalid(`payloadType is not ${PAYLOAD_TYPE}`);
  if (typeof payload !== 'string' || !BASE64.test(payload)) throw invalid('payload is not base64');
  if (!Array.isArray(signatures) || signatures.length === 0 || signatures.length > MAX_SIGNATURES)
    throw invalid(`signatures is not a list of 1 to ${MAX_SIGNATURES} entries`);
  const body = Buffer.from(payload, 'base64');
  const signed = signedBytes(body);
  if (!signatures.some((entry) => trusted.some((key) => isSignedBy(entry, signed, key))))
    throw invalid(`the trusted key ${trusted.map((key) => keyId(key).slice(0, 16)).join(', ')} did not sign it`);
  return parseObject(body.toString('utf8'), 'the payload');
}

function isSignedBy(entry: Json, signed: Buffer, key: KeyObject): boolean {
  if (!isJsonObject(entry) || typeof entry['sig'] !== 'string' || !BASE64.test(entry['sig'])) return false;
  return verify(null, signed, key, Buffer.from(entry['sig'], 'base64'));
}

/** The pre-authentication encoding of DSSE: the type is signed with the payload. */
function signedBytes(payload: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`DSSEv1 ${PAYLOAD_TYPE.length} ${PAYLOAD_TYPE} ${payload.byteLength} `), payload]);
}

function readTrustedKeys(pem: string): KeyObject[] {
  if (pem.includes('PRIVATE')) throw invalid('the trusted key is a private key; give the public one');
  const parts = pem.split(/(?<=-----END PUBLIC KEY-----)/).filter((part) => part.trim() !== '');
  if (parts.length > MAX_TRUSTED_KEYS)
    throw invalid(`the file of the trusted key has more than ${MAX_TRUSTED_KEYS} keys`);
  return (parts.length === 0 ? [pem] : parts).map(readTrustedKey);
}

function readTrustedKey(pem: string): KeyObject {
  let key: KeyObject;
  try {
    key = createPublicKey(pem);
  } catch (error) {
    throw invalid('the trusted key is not a public key in PEM', error);
  }
  if (key.asymmetricKeyType !== 'ed25519') throw invalid('the trusted key is not an Ed25519 key');
  return key;
}

function keyId(key: KeyObject): string {
  return createHash('sha256')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest('hex');
}

function parseObject(text: string, what: string): JsonObject {
  if (text.length > MAX_CHARACTERS) throw invalid(`${what} is larger than ${MAX_CHARACTERS} characters`);
  if (jsonExcess(text, LIMITS) !== undefined) throw invalid(`${what} has too many members or is nested too deeply`);
  let value: Json;
  try {
    value = parseUntrustedJson(text);
  } catch (error) {
    if (error instanceof SyntaxError) throw invalid(`${what} is not JSON`, error);
    throw error;
  }
  if (!isJsonObject(value)) throw invalid(`${what} is not a JSON object`);
  return value;
}

function invalid(problem: string, cause?: unknown): TemperError {
  return new TemperError(
    'TEMPER_ATTESTATION_INVALID',
    `${problem}; nothing was imported, obtain the package and its attestation again`,
    cause === undefined ? {} : { cause },
  );
}
