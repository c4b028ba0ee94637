/** The headers that the proxy passes on. Headers come as Node has them in `rawHeaders`: name, value, name, value. */
import { TemperError } from '../../lib/errors.ts';
import { DELIVERY_TOKEN_HEADER } from '../../gateway-api/pod-api.ts';
import type { Target } from '../../net/targets.ts';

type RawHeaders = readonly string[];

const MAX_HEADERS = 100;

/** Headers of one connection (RFC 9110, 7.6.1), and those that only the proxy reads. */
const NOT_FORWARDED: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authentication-info',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'host',
  'expect',
  'via',
  DELIVERY_TOKEN_HEADER,
]);

/** The proxy names itself without its address (RFC 9110, 7.6.3). */
const VIA = '1.1 temper-egress';

/**
 * The headers for the target. Throws TEMPER_FETCH_DENIED when the request could mean another target or another length to another reader:
 * a second or another `Host`, an upgrade, a connection header that names other headers, a coding other than `chunked`.
 */
export function headersForTarget(raw: RawHeaders, target: Target): string[] {
  if (raw.length > 2 * MAX_HEADERS) throw denied(`it has more than ${MAX_HEADERS} headers`);
  const hosts = valuesOf(raw, 'host');
  if (hosts.length !== 1 || !namesTarget(hosts[0] ?? '', target)) {
    throw denied('its header Host is not the host of its URL, once');
  }
  if (valuesOf(raw, 'upgrade').length > 0) throw denied('an upgrade to another protocol is not possible');
  const options = valuesOf(raw, 'connection').flatMap((value) => value.toLowerCase().split(','));
  if (!options.every((option) => ['', 'close', 'keep-alive'].includes(option.trim()))) {
    throw denied('its header Connection may only be "close" or "keep-alive"');
  }
  const codings = valuesOf(raw, 'transfer-encoding');
  if (codings.length > 1 || !codings.every((coding) => coding.toLowerCase() === 'chunked')) {
    throw denied('its only transfer coding may be "chunked"');
  }
  const framing = codings.length === 1 ? ['transfer-encoding', 'chunked'] : [];
  return ['host', target.url.host, ...endToEnd(raw), ...framing, 'via', VIA, 'connection', 'close'];
}

/** The headers of the response for the client. Node adds those of the connection. */
export function headersForClient(raw: RawHeaders): string[] {
  return [...endToEnd(raw), 'via', VIA];
}

/** Without the headers of one connection, and without those that the header `Connection` names. */
function endToEnd(raw: RawHeaders): string[] {
  const named = new Set(
    valuesOf(raw, 'connection').flatMap((value) =>
      value
        .toLowerCase()
        .split(',')
        .map((name) => name.trim()),
    ),
  );
  return pairsOf(raw)
    .filter(([name]) => !NOT_FORWARDED.has(name.toLowerCase()) && !named.has(name.toLowerCase()))
    .flat();
}

/** With or without the default port, in any case. */
function namesTarget(host: string, { url, port }: Target): boolean {
  const plain = host.toLowerCase();
  return plain === url.host || plain === `${url.hostname}:${port}`;
}

function valuesOf(raw: RawHeaders, name: string): string[] {
  return pairsOf(raw).flatMap(([key, value]) => (key.toLowerCase() === name ? [value] : []));
}

function pairsOf(raw: RawHeaders): [name: string, value: string][] {
  return Array.from({ length: raw.length / 2 }, (_, index) => [raw[2 * index] ?? '', raw[2 * index + 1] ?? '']);
}

function denied(rule: string): TemperError {
  return new TemperError('TEMPER_FETCH_DENIED', `the request is refused: ${rule}`);
}
