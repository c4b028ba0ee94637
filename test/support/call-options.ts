import { systemClock } from '../../src/lib/clock.ts';
import { ulids } from '../../src/lib/ids.ts';
import type { CallOptions } from '../../src/lib/call-options.ts';

/** Options of a call with a new idempotency key that ends after `timeoutMs`. */
export function callOptions(timeoutMs = 60_000): CallOptions {
  return {
    signal: new AbortController().signal,
    deadline: systemClock.monotonic() + timeoutMs,
    key: ulids.next('key'),
  };
}
