import { setTimeout as sleep } from 'node:timers/promises';

export interface PollOptions {
  /** No attempt starts after this time, and a single attempt may not take longer. Default: one minute. */
  readonly timeoutMs?: number;
  /** The pause between two attempts. */
  readonly intervalMs?: number;
}

const TIMEOUT_MS = 60_000;
const INTERVAL_MS = 50;
const MAX_SHOWN = 3_000;

/** A check throws this error to end polling at once, e.g. when the observed process has exited. */
export class StopPolling extends Error {
  override readonly name = 'StopPolling';
}

/** The outcome of one attempt: `value` is the result when `isDone`, else the text that describes what was seen. */
type Attempt<T> = { isDone: true; value: T } | { isDone: false; seen: string; cause?: unknown };

/**
 * Calls `check` until it returns a value other than undefined and false, and returns that value. An error that `check` throws counts as a
 * failed attempt. On timeout it throws an error with `what`, the duration, the number of attempts and the last value or error.
 */
export async function poll<T>(
  what: string,
  check: () => T | undefined | false | Promise<T | undefined | false>,
  options: PollOptions = {},
): Promise<T> {
  return repeat(what, options, async () => {
    const value = await check();
    return value === undefined || value === false ? { isDone: false, seen: String(value) } : { isDone: true, value };
  });
}

/** Reads a value until `isExpected` accepts it, and returns it. Errors and timeout: see `poll`; the error contains the last value. */
export async function pollValue<T>(
  what: string,
  read: () => T | Promise<T>,
  isExpected: (value: T) => boolean,
  options: PollOptions = {},
): Promise<T> {
  return repeat(what, options, async () => {
    const value = await read();
    return isExpected(value) ? { isDone: true, value } : { isDone: false, seen: shown(value) };
  });
}

/** Calls `assertion` until it does not throw, and returns its result. Errors and timeout: see `poll`. */
export async function pollAssertion<T>(
  what: string,
  assertion: () => T | Promise<T>,
  options: PollOptions = {},
): Promise<T> {
  return repeat(what, options, async () => ({ isDone: true, value: await assertion() }));
}

async function repeat<T>(
  what: string,
  { timeoutMs = TIMEOUT_MS, intervalMs = INTERVAL_MS }: PollOptions,
  attempt: () => Promise<Attempt<T>>,
): Promise<T> {
  const start = performance.now();
  for (let attempts = 1; ; attempts += 1) {
    const result = await outcomeOf(attempt, timeoutMs);
    if (result.isDone) return result.value;
    const elapsedMs = performance.now() - start;
    if (elapsedMs >= timeoutMs) {
      const message = `timed out waiting for ${what} after ${(elapsedMs / 1_000).toFixed(1)} s and ${attempts} attempts; last: ${result.seen}`;
      throw new Error(message, { cause: result.cause });
    }
    await sleep(intervalMs);
  }
}

/** Runs one attempt. Stops waiting for it after `timeoutMs`, so that a check that hangs cannot block the test. */
async function outcomeOf<T>(attempt: () => Promise<Attempt<T>>, timeoutMs: number): Promise<Attempt<T>> {
  const finished = new AbortController();
  const timeout = sleep(timeoutMs, undefined, { signal: finished.signal }).then(
    (): Attempt<T> => ({ isDone: false, seen: `an attempt that did not finish within ${timeoutMs / 1_000} s` }),
    (): Attempt<T> => ({ isDone: false, seen: '' }),
  );
  try {
    return await Promise.race([attempt(), timeout]);
  } catch (error) {
    if (error instanceof StopPolling) throw error;
    return { isDone: false, seen: String(error), cause: error };
  } finally {
    finished.abort();
  }
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}… (${text.length} characters)` : text;
}
