import type { TokenBucketOptions } from '../../../lib/async/token-bucket.ts';
import { jsonExcess, type JsonLimits } from '../../../lib/json.ts';

/** The longest message of a server of a user: the largest output, with its images. */
export const MAX_MESSAGE_BYTES = 8 * 1_024 * 1_024;

const LIMITS: JsonLimits = { values: 100_000, depth: 64 };

/** The messages of a server that answer nothing, such as notifications. */
export const UNASKED: TokenBucketOptions = { burst: 1_000, perSecond: 50 };

/** Why a message of a server is not parsed; undefined when it may be. */
export function messageProblem(text: string): string | undefined {
  const excess = jsonExcess(text, LIMITS);
  return excess === undefined ? undefined : `a message has more ${excess} than the limit of ${LIMITS[excess]}`;
}
