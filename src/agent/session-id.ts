import { TemperError } from '../lib/errors.ts';
import { printable } from '../lib/escape.ts';

const SESSION_ID = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/;

export function isSessionId(session: string): boolean {
  return SESSION_ID.test(session);
}

/** Throws TEMPER_SESSION_INVALID for an id that is missing or malformed. A session is named by whoever opens it, never guessed. */
export function assertSessionId(session: string): void {
  if (isSessionId(session)) return;
  throw new TemperError(
    'TEMPER_SESSION_INVALID',
    session === ''
      ? 'the message names no session; give it one'
      : `"${printable(session, 80)}" is no session id; use 1 to 128 letters, digits, ".", "_" or "-", the first a letter, digit or "_"`,
  );
}
