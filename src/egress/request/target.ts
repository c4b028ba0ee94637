/** Where a request to the proxy wants to go, from its request line alone. Resolves no names; whether the agent may go there is not decided here. */
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { type Target, validateTarget } from '../../net/targets.ts';

/** A host and a port. A host with any other character, such as a `@` or a `/`, would have a second meaning in a URL. */
const AUTHORITY = /^(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]):([1-9]\d{0,4})$/;

/** The target of `CONNECT host:port`. Throws TEMPER_FETCH_DENIED. */
export function tunnelTarget(authority: string): Target {
  const port = AUTHORITY.exec(authority)?.[1];
  if (port === undefined) throw denied(authority, 'CONNECT needs a host and a port, as in "example.com:443"');
  return validateTarget(`https://${authority}/`, { ports: [portOf(port, authority)], hostDenialReason: ANY_HOST });
}

/** The target of a request whose request line has a whole URL, which only `http` may have. Throws TEMPER_FETCH_DENIED. */
export function plainTarget(url: string): Target {
  if (!url.toLowerCase().startsWith('http://')) {
    throw denied(url, 'a request needs a whole URL with "http://"; for https use CONNECT');
  }
  if (url.includes('#')) throw denied(url, 'the URL of a request has no fragment');
  const port = /^http:\/\/[^/?]*:([1-9]\d{0,4})(?:[/?]|$)/i.exec(url)?.[1];
  const ports = port === undefined ? [] : [portOf(port, url)];
  return validateTarget(url, { allowHttp: true, ports, hostDenialReason: ANY_HOST });
}

/** The gateway decides about hosts and ports. */
const ANY_HOST = (): undefined => undefined;

function portOf(text: string, request: string): number {
  const port = Number(text);
  if (port > 65_535) throw denied(request, `port ${text} does not exist`);
  return port;
}

function denied(text: string, rule: string): TemperError {
  return new TemperError('TEMPER_FETCH_DENIED', `"${printable(text, 200)}" is refused: ${rule}`);
}
