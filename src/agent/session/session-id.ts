import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';

const SESSION_ID = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/;

export function isSessionId(session: string): boolean {
  return SESSION_ID.test(session);
}

/** Throws TEMPER_SESSION_INVALID for a missing or malformed id. The client chooses the id of a session; there is no default. */
export function assertSessionId(session: string): void {
  if (isSessionId(session)) return;
  throw new TemperError(
    'TEMPER_SESSION_INVALID',
    session === ''
      ? 'the message has no session; set one'
      : `"${printable(session, 80)}" is not a valid session id; use 1 to 128 letters, digits, ".", "_" or "-", the first a letter, digit or "_"`,
  );
}

export function sessionClosed(session: string, closedAt: string): TemperError {
  return new TemperError(
    'TEMPER_SESSION_CLOSED',
    `a user closed session "${session}" at ${printable(closedAt, 40)}; send the message in a new session`,
  );
}
