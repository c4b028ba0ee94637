import { sha256 } from '../lib/canonical.ts';
import { TemperError } from '../lib/errors.ts';
import type { Json } from '../lib/json.ts';
import { MAX_EVENT_BYTES } from './limits.ts';

/** The id of an event of this agent: the same for a repeated call. */
export function eventId(agentUid: string, key: string): string {
  return `evt-${callDigest(agentUid, key, 32)}`;
}

/** Identifies a call of an agent by this number of hexadecimal digits. */
export function callDigest(agentUid: string, key: string, digits: number): string {
  const start = 'sha256:'.length;
  return sha256(`${agentUid}\n${key}`).slice(start, start + digits);
}

/** Throws TEMPER_EVENT_REFUSED. */
export function assertEventSize(data: Json): void {
  const bytes = Buffer.byteLength(JSON.stringify(data));
  if (bytes <= MAX_EVENT_BYTES) return;
  throw new TemperError(
    'TEMPER_EVENT_REFUSED',
    `the data has ${bytes} bytes; an event may have ${MAX_EVENT_BYTES}: store the rest in shared memory and publish its key`,
  );
}
