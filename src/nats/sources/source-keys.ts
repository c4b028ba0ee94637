import { TemperError } from '../../lib/errors.ts';
import { isJsonObject, type Json, parseUntrustedJson, textAt } from '../../lib/json.ts';
import { KEY_BYTES } from '../../tempering/withheld/encryption.ts';

/** A key that encrypts withheld sources. */
export interface SourceKey {
  readonly id: string;
  readonly createdAt: Date;
  readonly key: Buffer;
}

const HOUR_MS = 3_600_000;
const LIFETIME_MS = 90 * 24 * HOUR_MS;
/** The kubelet takes minutes to update a mounted Secret, and a gateway reads it every ten seconds. */
const ANNOUNCE_MS = HOUR_MS;
/** Until no gateway encrypts with an older key, and no work of a verifier is encrypted with one. */
const RETIRE_MS = 48 * HOUR_MS;

/**
 * The next keys, oldest first; the same list when nothing changes. A new key is distributed before it encrypts:
 *
 *     first ──(90 days)──▶ first + second ──(an hour: the second encrypts)──▶ (two days, and nothing has the first) ──▶ second
 *
 * `inUse`: the ids of the keys that encrypt something stored; undefined while that is unknown.
 */
export function rotateSourceKeys(
  keys: readonly SourceKey[],
  inUse: ReadonlySet<string> | undefined,
  now: Date,
  newKey: () => Pick<SourceKey, 'id' | 'key'>,
): readonly SourceKey[] {
  const newest = keys.at(-1);
  if (newest === undefined || ageOf(newest, now) >= LIFETIME_MS) return [...keys, { ...newKey(), createdAt: now }];
  if (keys.length === 1 || inUse === undefined || ageOf(newest, now) < RETIRE_MS) return keys;
  const kept = keys.filter((key) => key === newest || inUse.has(key.id));
  return kept.length === keys.length ? keys : kept;
}

/** The key that encrypts now: the newest that every gateway has. Undefined without keys. */
export function encryptingKey(keys: readonly SourceKey[], now: Date): SourceKey | undefined {
  return keys.findLast((key) => ageOf(key, now) >= ANNOUNCE_MS) ?? keys[0];
}

/** The member of the Secret. */
export function sourceKeysText(keys: readonly SourceKey[]): string {
  const listed = keys.map(({ id, createdAt, key }) => ({
    id,
    createdAt: createdAt.toISOString(),
    key: key.toString('base64'),
  }));
  return JSON.stringify({ keys: listed });
}

/** Throws TEMPER_CONFIGURATION_INVALID for text that is not a list of keys. */
export function parseSourceKeys(text: string): SourceKey[] {
  const value = parsed(text);
  const keys = isJsonObject(value) && Array.isArray(value['keys']) ? value['keys'].map(keyIn) : [];
  const found = keys.filter((key) => key !== undefined);
  if (found.length === 0 || found.length < keys.length)
    throw new TemperError('TEMPER_CONFIGURATION_INVALID', 'the keys of withheld sources are malformed');
  return found;
}

function keyIn(value: Json): SourceKey | undefined {
  const [id, key] = [textAt(value, ['id']), Buffer.from(textAt(value, ['key']), 'base64')];
  const createdAt = new Date(textAt(value, ['createdAt']));
  const isValid = id !== '' && key.byteLength === KEY_BYTES && !Number.isNaN(createdAt.getTime());
  return isValid ? { id, createdAt, key } : undefined;
}

function parsed(text: string): Json | undefined {
  try {
    return parseUntrustedJson(text);
  } catch {
    return undefined;
  }
}

function ageOf({ createdAt }: SourceKey, now: Date): number {
  return now.getTime() - createdAt.getTime();
}
