/** From the text of a URL to what may be connected to, or the reason why not. Nothing is resolved here. */
import { TemperError } from '../lib/errors.ts';
import { printable } from '../lib/escape.ts';
import { isInnerName, isPublicAddress } from './addresses.ts';

export interface TargetRules {
  /** http beside https. */
  allowHttp?: boolean;
  /** Ports beside the scheme's own. */
  ports?: readonly number[];
  /** Why the caller may not reach this host, in lower case; undefined when it may. Asked before anything is resolved, for each hop. */
  refuseHost(host: string, port: number): string | undefined;
}

export interface Target {
  url: URL;
  /** Lower case, without brackets. */
  host: string;
  port: number;
  secure: boolean;
  /** The host is an IP address, not a name. */
  literal: boolean;
}

const MAX_URL = 8_192;

/** Throws TEMPER_FETCH_DENIED with the rule that the URL breaks. */
export function vetTarget(text: string, rules: TargetRules): Target {
  const url = parse(text);
  const secure = url.protocol === 'https:';
  if (!secure && !(rules.allowHttp === true && url.protocol === 'http:')) {
    throw denied(text, `only ${rules.allowHttp === true ? 'https and http are' : 'https is'} allowed`);
  }
  requirePlainAuthority(text, url);
  const literal = /^(?:\d{1,3}(?:\.\d{1,3}){3}|\[.*\])$/.test(url.hostname);
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const ownPort = secure ? 443 : 80;
  const port = url.port === '' ? ownPort : Number(url.port);
  if (port !== ownPort && !(rules.ports ?? []).includes(port)) throw denied(text, `port ${port} is not allowed`);
  if (literal ? !isPublicAddress(host) : isInnerName(host)) throw denied(text, `${host} is not on the public internet`);
  const refusal = rules.refuseHost(host, port);
  if (refusal !== undefined) throw denied(text, refusal);
  return { url, host, port, secure, literal };
}

function parse(text: string): URL {
  if (text.length > MAX_URL) throw denied(text, `it is longer than ${MAX_URL} characters`);
  // Parsers drop or turn these, so that two readers of one text can see two hosts.
  if (!/^[\x21-\x5b\x5d-\x7e]+$/.test(text))
    throw denied(text, 'it holds a space, a backslash or a character outside ASCII');
  try {
    return new URL(text);
  } catch {
    throw denied(text, 'it is not an absolute URL');
  }
}

/** The authority must read the same to everybody: scheme, two slashes, the host as the parser understands it, at most a port. */
function requirePlainAuthority(text: string, url: URL): void {
  const authority = /^[a-z]+:\/\/([^/?#]*)/i.exec(text)?.[1];
  if (authority === undefined) throw denied(text, 'it must begin with a scheme and two slashes');
  if (authority.includes('@')) throw denied(text, 'user names and passwords are not allowed in it');
  const host = /^(\[[^\]]*\]|[^:]*)(?::\d{1,5})?$/.exec(authority)?.[1];
  if (host === undefined || host.toLowerCase() !== url.hostname || host.endsWith('.')) {
    throw denied(text, 'its host is not written in its plain form');
  }
}

function denied(text: string, rule: string): TemperError {
  return new TemperError('TEMPER_FETCH_DENIED', `"${printable(text, 200)}" is refused: ${rule}`);
}
