import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';

/** The names of the machine of a client, which no other machine can take in a browser. */
const LOOPBACK: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);

/**
 * The protocol requires this check against pages that reach a server under a name of their own. Programs send no `Origin`. Throws
 * TEMPER_ORIGIN_DENIED for a page of another machine, and for an origin that is no URL.
 */
export function assertOrigin(origin: string | undefined): void {
  if (origin === undefined || isLoopback(origin)) return;
  const stated = printable(origin, 200);
  throw new TemperError(
    'TEMPER_ORIGIN_DENIED',
    `the request comes from a page of "${stated}", and the endpoint serves programs and pages of this machine (localhost, 127.0.0.1 and [::1]); send no header Origin`,
  );
}

function isLoopback(origin: string): boolean {
  if (!URL.canParse(origin)) return false;
  const { protocol, hostname } = new URL(origin);
  return ['http:', 'https:'].includes(protocol) && LOOPBACK.has(hostname);
}
