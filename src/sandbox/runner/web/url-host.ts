/** Hosts of URLs: names, IPv4 and IPv6 addresses. The text of these functions runs in the guest; see web-globals.ts. */
import { percentDecode, percentEncode } from './url-encoding.ts';

export function invalidUrl(reason = 'Invalid URL'): TypeError & { code: string } {
  return Object.assign(new TypeError(reason), { code: 'ERR_INVALID_URL' });
}

/** The host in its normal form. Throws a TypeError for an invalid one, and for a name that needs IDNA. */
export function parseHost(text: string, isSpecial: boolean): string {
  if (text.startsWith('[')) {
    if (!text.endsWith(']')) throw invalidUrl();
    return `[${serializeIpv6(parseIpv6(text.slice(1, -1)))}]`;
  }
  if (!isSpecial) {
    if (/[\0\t\n\r #/:<>?@[\\\]^|]/.test(text)) throw invalidUrl();
    return percentEncode(text, 'control');
  }
  const name = percentDecode(text, false).toLowerCase();
  for (let index = 0; index < name.length; index += 1) {
    if (name.charCodeAt(index) > 0x7f) throw invalidUrl(noInternationalNames());
  }
  if (name.split('.').some((label) => label.startsWith('xn--'))) throw invalidUrl(noInternationalNames());
  // oxlint-disable-next-line no-control-regex -- control characters are what it refuses
  if (name === '' || /[\0-\u0020#%/:<>?@[\\\]^|\u007f]/.test(name)) throw invalidUrl();
  return endsInNumber(name) ? parseIpv4(name) : name;
}

export function noInternationalNames(): string {
  return 'Invalid URL: a tool supports only ASCII host names, and none that begin with xn--';
}

function endsInNumber(name: string): boolean {
  const parts = name.split('.');
  if (parts.at(-1) === '' && parts.length > 1) parts.pop();
  return /^(?:\d+|0[xX][\da-fA-F]*)$/.test(parts.at(-1) ?? '');
}

function parseIpv4Number(text: string): number {
  if (/^0[xX][\da-fA-F]*$/.test(text)) return text.length === 2 ? 0 : Number.parseInt(text.slice(2), 16);
  if (/^0[0-7]+$/.test(text)) return Number.parseInt(text, 8);
  if (/^(?:0|[1-9]\d*)$/.test(text)) return Number.parseInt(text, 10);
  throw invalidUrl();
}

function parseIpv4(name: string): string {
  const parts = name.split('.');
  if (parts.at(-1) === '' && parts.length > 1) parts.pop();
  if (parts.length > 4) throw invalidUrl();
  const numbers = parts.map(parseIpv4Number);
  const last = numbers.pop() ?? 0;
  if (numbers.some((number) => number > 255) || last >= 256 ** (4 - numbers.length)) throw invalidUrl();
  const address = numbers.reduce((sum, number, index) => sum + number * 256 ** (3 - index), last);
  return [3, 2, 1, 0].map((place) => Math.floor(address / 256 ** place) % 256).join('.');
}

/** The eight pieces of an IPv6 address. */
function parseIpv6(text: string): number[] {
  const halves = text.split('::');
  if (halves.length > 2) throw invalidUrl();
  const [head = [], tail] = halves.map((half, index) => parseIpv6Half(half, index === halves.length - 1));
  if (tail === undefined) {
    if (head.length !== 8) throw invalidUrl();
    return head;
  }
  const missing = 8 - head.length - tail.length;
  if (missing < 1) throw invalidUrl();
  return [...head, ...Array.from({ length: missing }, () => 0), ...tail];
}

function parseIpv6Half(half: string, isLast: boolean): number[] {
  if (half === '') return [];
  const pieces = half.split(':');
  return pieces.flatMap((piece, index) => {
    if (/^[\da-fA-F]{1,4}$/.test(piece)) return [Number.parseInt(piece, 16)];
    const octets = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(piece)?.slice(1);
    const isValid = isLast && index === pieces.length - 1 && octets?.every((octet) => /^(?:0|[1-9]\d*)$/.test(octet));
    const [first = 0, second = 0, third = 0, fourth = 0] = (octets ?? []).map(Number);
    if (isValid !== true || Math.max(first, second, third, fourth) > 255) throw invalidUrl();
    return [first * 256 + second, third * 256 + fourth];
  });
}

/** The shortest form: the first longest run of at least two zeros becomes `::`. */
function serializeIpv6(pieces: readonly number[]): string {
  let best = { start: -1, length: 1 };
  for (let start = 0; start < 8; start += 1) {
    let length = 0;
    while (pieces[start + length] === 0) length += 1;
    if (length > best.length) best = { start, length };
  }
  const hex = (from: number, to: number): string =>
    pieces
      .slice(from, to)
      .map((piece) => piece.toString(16))
      .join(':');
  return best.start === -1 ? hex(0, 8) : `${hex(0, best.start)}::${hex(best.start + best.length, 8)}`;
}

/** The functions of this module, for the guest. */
export const URL_HOST_PARTS = [
  invalidUrl,
  parseHost,
  noInternationalNames,
  endsInNumber,
  parseIpv4Number,
  parseIpv4,
  parseIpv6,
  parseIpv6Half,
  serializeIpv6,
];
