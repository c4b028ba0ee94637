import { domainToASCII } from 'node:url';

/** The port of a host without a port: tools use HTTPS. */
export const DEFAULT_PORT = '443';

const MAX_HOST = 253;

/** A host in normal form: lower case, punycode, no trailing dot. `address` is true for an IP literal; IPv6 is in brackets. */
export interface Host {
  address: boolean;
  labels: readonly string[];
}

export interface HostAndPort {
  host: string;
  /** As written; undefined when the text has no port. */
  port: string | undefined;
}

/** Splits `name`, `name:port`, `[v6]`, `[v6]:port`. Undefined when the text is ambiguous. */
export function splitPort(text: string): HostAndPort | undefined {
  if (text.startsWith('[')) {
    const end = text.indexOf(']');
    if (end < 0) return undefined;
    const rest = text.slice(end + 1);
    if (rest !== '' && !rest.startsWith(':')) return undefined;
    return { host: text.slice(0, end + 1), port: rest === '' ? undefined : rest.slice(1) };
  }
  const colon = text.indexOf(':');
  if (colon < 0) return { host: text, port: undefined };
  if (text.includes(':', colon + 1)) return undefined;
  return { host: text.slice(0, colon), port: text.slice(colon + 1) };
}

/** 1 to 65535 in plain decimal; undefined for anything else, leading zeros included. */
export function parsePort(text: string): string | undefined {
  if (text.length < 1 || text.length > 5 || !isDecimal(text) || text.startsWith('0')) return undefined;
  return Number(text) <= 65_535 ? text : undefined;
}

/** Parses a host without wildcards. Every notation of an IPv4 address becomes dotted decimal. */
export function parseHost(text: string): Host | undefined {
  const bare = text.endsWith('.') ? text.slice(0, -1) : text;
  if (bare === '' || bare.length > MAX_HOST || !isHostText(bare)) return undefined;
  const ascii = isPlainName(bare) ? bare : domainToASCII(bare);
  if (ascii === '') return undefined;
  if (ascii.startsWith('[')) return { address: true, labels: [ascii] };
  const labels = ascii.split('.');
  if (!labels.every(isLabel)) return undefined;
  return isDecimal(labels.at(-1) ?? '') ? { address: true, labels: [ascii] } : { address: false, labels };
}

/** False for text with characters that end a host in a URL or could hide one. */
function isHostText(text: string): boolean {
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code <= 0x20 || code === 0x7f || '%/\\?#@*<>^|'.includes(text[index] ?? '')) return false;
  }
  return true;
}

/** True for lower-case letters, digits, hyphens and dots without a label that could be a number: the text is already in normal form. */
function isPlainName(text: string): boolean {
  let labelStart = true;
  let lastStartsWithDigit = false;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code === 0x2e) {
      labelStart = true;
      continue;
    }
    const digit = code >= 0x30 && code <= 0x39;
    if (!digit && !(code >= 0x61 && code <= 0x7a) && code !== 0x2d) return false;
    if (labelStart) lastStartsWithDigit = digit;
    labelStart = false;
  }
  return !lastStartsWithDigit && !text.includes('xn--');
}

function isLabel(text: string): boolean {
  if (text.length < 1 || text.length > 63) return false;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    const letter = (code >= 0x61 && code <= 0x7a) || (code >= 0x30 && code <= 0x39);
    if (!letter && code !== 0x2d && code !== 0x5f) return false;
  }
  return true;
}

function isDecimal(text: string): boolean {
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code < 0x30 || code > 0x39) return false;
  }
  return text !== '';
}
