import { setTimeout as sleep } from 'node:timers/promises';
import { isTemperError } from '../../../src/lib/errors.ts';

const INTERVAL_MS = 50;
const TIMEOUT_MS = 90_000;

/**
 * Repeats the call while NATS is unavailable, as every caller does. A full inbox has the same retry "backoff": it slows the sender down.
 * Throws the last error after `timeoutMs`.
 */
export async function withRetry<T>(call: () => Promise<T>, timeoutMs = TIMEOUT_MS): Promise<T> {
  const end = performance.now() + timeoutMs;
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!isTemperError(error) || error.retry !== 'backoff' || performance.now() >= end) throw error;
      await sleep(INTERVAL_MS);
    }
  }
}
