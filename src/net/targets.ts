/** Validates the text of a URL and returns the connection target. Resolves no names. */
import { TemperError } from '../lib/errors.ts';
import { printable } from '../lib/printable.ts';
import { isInternalHostname, isPublicAddress } from './addresses.ts';

export interface TargetRules {
  /** Allow http in addition to https. */
  allowHttp?: boolean;
  /** Ports allowed in addition to the default port of the scheme. */
  ports?: readonly number[];
  /** The reason why the caller may not reach this host (in lower case); undefined when it may. Called for each hop, before DNS resolution. */
  hostDenialReason(host: string, port: number): string | undefined;
  /**
   * Names of servers in a private network that the platform configured, in lower case. Such a name may be internal and may resolve to private
   * addresses, but never to link-local ones. Never for targets that untrusted code chooses.
   */
  privateHosts?: ReadonlySet<string>;
}

export interface Target {
  url: URL;
  /** Lower case, without brackets. */
  host: string;
  port: number;
  isHttps: boolean;
  /** True when the host is an IP address, not a name. */
  isIpAddress: boolean;
  /** The name may resolve to private addresses. */
  mayBePrivate: boolean;
}

/**
 * Rules for a server that a user of the command line names, which may be in a private network. It may lead to other hosts over HTTPS on the
 * public internet only, because the server chooses them.
 */
export function namedServerRules({
  host,
  port,
  isHttps,
}: {
  host: string;
  port: number;
  isHttps: boolean;
}): TargetRules {
  return {
    ports: [port],
    allowHttp: !isHttps,
    privateHosts: new Set([host]),
    hostDenialReason: (target, targetPort) =>
      (target === host && targetPort === port) || targetPort === 443
        ? undefined
        : 'the server may lead to other hosts and ports only over https',
  };
}

const MAX_URL_LENGTH = 8_192;

/** Throws TEMPER_FETCH_DENIED with the rule that the URL violates. */
export function validateTarget(text: string, rules: TargetRules): Target {
  const url = parse(text);
  const isHttps = url.protocol === 'https:';
  requireScheme(text, url, rules);
  requirePlainAuthority(text, url);
  const isIpAddress = /^(?:\d{1,3}(?:\.\d{1,3}){3}|\[.*\])$/.test(url.hostname);
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const defaultPort = isHttps ? 443 : 80;
  const port = url.port === '' ? defaultPort : Number(url.port);
  if (port !== defaultPort && !(rules.ports ?? []).includes(port)) throw denied(text, `port ${port} is not allowed`);
  const mayBePrivate = !isIpAddress && rules.privateHosts?.has(host) === true;
  if (!mayBePrivate && !isPublicHost(host, isIpAddress)) throw denied(text, `${host} is not on the public internet`);
  const reason = rules.hostDenialReason(host, port);
  if (reason !== undefined) throw denied(text, reason);
  return { url, host, port, isHttps, isIpAddress, mayBePrivate };
}

function requireScheme(text: string, { protocol }: URL, { allowHttp = false }: TargetRules): void {
  if (protocol === 'https:' || (allowHttp && protocol === 'http:')) return;
  throw denied(text, `only ${allowHttp ? 'https and http are' : 'https is'} allowed`);
}

function isPublicHost(host: string, isIpAddress: boolean): boolean {
  return isIpAddress ? isPublicAddress(host) : !isInternalHostname(host);
}

function parse(text: string): URL {
  if (text.length > MAX_URL_LENGTH) throw denied(text, `it is longer than ${MAX_URL_LENGTH} characters`);
  // URL parsers drop or convert any other character, so that two parsers can read different hosts from one text.
  if (!/^[\x21-\x5b\x5d-\x7e]+$/.test(text))
    throw denied(text, 'it contains a space, a backslash or a character outside ASCII');
  try {
    return new URL(text);
  } catch {
    throw denied(text, 'it is not an absolute URL');
  }
}

/** Every parser must read the same authority: scheme, two slashes, the host exactly as parsed, and at most a port. */
function requirePlainAuthority(text: string, url: URL): void {
  const authority = /^[a-z]+:\/\/([^/?#]*)/i.exec(text)?.[1];
  if (authority === undefined) throw denied(text, 'it must start with a scheme and two slashes');
  if (authority.includes('@')) throw denied(text, 'it must not contain a user name or password');
  const host = /^(\[[^\]]*\]|[^:]*)(?::\d{1,5})?$/.exec(authority)?.[1];
  if (host === undefined || host.toLowerCase() !== url.hostname || host.endsWith('.')) {
    throw denied(text, 'its host is not in its plain form');
  }
}

function denied(text: string, rule: string): TemperError {
  return new TemperError('TEMPER_FETCH_DENIED', `"${printable(text, 200)}" is refused: ${rule}`);
}
