/**
 * Parses a URL as the URL Standard does, except that host names beyond ASCII are refused. The text of these functions runs
 * in the guest; see web-globals.ts.
 */
import { percentEncode } from './url-encoding.ts';
import { invalidUrl, parseHost } from './url-host.ts';

export interface UrlRecord {
  scheme: string;
  username: string;
  password: string;
  /** Null: no host. */
  host: string | null;
  port: number | null;
  /** A text is an opaque path. */
  path: string[] | string;
  query: string | null;
  fragment: string | null;
}

/** The part before the query and the fragment, and those two. */
interface UrlPieces {
  rest: string;
  query: string | null;
  fragment: string | null;
}

export function defaultPort(scheme: string): number | null {
  const ports: Record<string, number> = { 'http:': 80, 'https:': 443, 'ws:': 80, 'wss:': 443, 'ftp:': 21 };
  return ports[`${scheme}:`] ?? null;
}

export function isSpecialScheme(scheme: string): boolean {
  return scheme === 'file' || defaultPort(scheme) !== null;
}

function splitUrl(text: string): UrlPieces {
  const hash = text.indexOf('#');
  const fragment = hash === -1 ? null : text.slice(hash + 1);
  const before = hash === -1 ? text : text.slice(0, hash);
  const mark = before.indexOf('?');
  return {
    rest: mark === -1 ? before : before.slice(0, mark),
    query: mark === -1 ? null : before.slice(mark + 1),
    fragment,
  };
}

export function encodeQuery(query: string | null, scheme: string): string | null {
  return query === null ? null : percentEncode(query, isSpecialScheme(scheme) ? 'special-query' : 'query');
}

export function parseUrl(input: string, base: UrlRecord | undefined): UrlRecord {
  // oxlint-disable-next-line no-control-regex -- the standard strips control characters
  const text = input.toWellFormed().replace(/^[\0-\u0020]+/, '');
  let end = text.length;
  while (end > 0 && text.charCodeAt(end - 1) <= 0x20) end -= 1;
  const clean = text.slice(0, end).replaceAll(/[\t\n\r]/g, '');
  const match = /^([A-Za-z][A-Za-z\d+.-]*):/.exec(clean);
  const scheme = match?.[1]?.toLowerCase();
  const pieces = splitUrl(match === null ? clean : clean.slice(match[0].length));
  const url = scheme === undefined ? parseRelative(pieces, base) : parseAbsolute(scheme, pieces, base);
  if (pieces.query !== null) url.query = encodeQuery(pieces.query, url.scheme);
  url.fragment = pieces.fragment === null ? null : percentEncode(pieces.fragment, 'fragment');
  return url;
}

function emptyUrl(scheme: string): UrlRecord {
  return { scheme, username: '', password: '', host: null, port: null, path: [], query: null, fragment: null };
}

function parseAbsolute(scheme: string, pieces: UrlPieces, base: UrlRecord | undefined): UrlRecord {
  const { rest } = pieces;
  if (scheme === 'file') return parseFile(pieces, base?.scheme === 'file' ? base : undefined);
  const url = emptyUrl(scheme);
  if (isSpecialScheme(scheme)) {
    if (base?.scheme === scheme && !rest.startsWith('//')) return parseReference(pieces, base);
    return parseAuthority(url, rest.replace(/^[/\\]+/, ''));
  }
  if (rest.startsWith('//')) return parseAuthority(url, rest.slice(2));
  if (rest.startsWith('/')) return parsePath(url, rest.slice(1));
  const isFollowed = pieces.query !== null || pieces.fragment !== null;
  url.path = percentEncode(isFollowed ? rest.replace(/ $/, '%20') : rest, 'control');
  return url;
}

function parseRelative(pieces: UrlPieces, base: UrlRecord | undefined): UrlRecord {
  if (base === undefined) throw invalidUrl();
  if (typeof base.path === 'string') {
    if (pieces.rest !== '' || pieces.query !== null || pieces.fragment === null) throw invalidUrl();
    return { ...base };
  }
  return base.scheme === 'file' ? parseFile(pieces, base) : parseReference(pieces, base);
}

/** A reference without a scheme of its own, to a base that is no file. */
function parseReference({ rest, query }: UrlPieces, base: UrlRecord): UrlRecord {
  const special = isSpecialScheme(base.scheme);
  const text = special ? rest.replaceAll('\\', '/') : rest;
  if (text.startsWith('//')) {
    return parseAuthority(emptyUrl(base.scheme), special ? rest.replace(/^[/\\]+/, '') : rest.slice(2));
  }
  const url = { ...base, path: base.path.slice() as string[], query: null, fragment: null };
  if (text.startsWith('/')) return parsePath({ ...url, path: [] }, rest.slice(1));
  if (rest === '') return { ...url, query: query === null ? base.query : null };
  shortenPath(url);
  return parsePath(url, rest);
}

/** Parses what comes after the slashes: user information, host, port and path. */
function parseAuthority(url: UrlRecord, text: string): UrlRecord {
  const special = isSpecialScheme(url.scheme);
  const end = text.search(special ? /[/\\]/ : /\//);
  const authority = end === -1 ? text : text.slice(0, end);
  const path = end === -1 ? '' : text.slice(end);
  const at = authority.lastIndexOf('@');
  if (at !== -1) {
    const userinfo = authority.slice(0, at);
    const colon = userinfo.indexOf(':');
    url.username = percentEncode(colon === -1 ? userinfo : userinfo.slice(0, colon), 'userinfo');
    url.password = percentEncode(colon === -1 ? '' : userinfo.slice(colon + 1), 'userinfo');
  }
  const address = authority.slice(at + 1);
  if (address === '' && (special || at !== -1)) throw invalidUrl();
  setAddress(url, address);
  return parsePathStart(url, path);
}

/** Sets host and port. */
function setAddress(url: UrlRecord, address: string): void {
  const bracket = address.indexOf(']');
  const colon = address.indexOf(':', bracket + 1);
  const isSplit = colon !== -1 && !(address.startsWith('[') && bracket === -1);
  const host = isSplit ? address.slice(0, colon) : address;
  if (isSplit && host === '') throw invalidUrl();
  url.host = host === '' ? '' : parseHost(host, isSpecialScheme(url.scheme));
  url.port = isSplit ? parsePort(address.slice(colon + 1), url.scheme) : null;
}

export function parsePort(text: string, scheme: string): number | null {
  if (text === '') return null;
  const port = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!(port <= 65_535)) throw invalidUrl();
  return port === defaultPort(scheme) ? null : port;
}

export function parsePathStart(url: UrlRecord, path: string): UrlRecord {
  const special = isSpecialScheme(url.scheme);
  if (path === '' && !special) return url;
  return parsePath(url, (special ? /^[/\\]/ : /^\//).test(path) ? path.slice(1) : path);
}

/** Appends the segments of a text to the path. */
function parsePath(url: UrlRecord, text: string): UrlRecord {
  const segments = text.split(isSpecialScheme(url.scheme) ? /[/\\]/ : '/');
  for (const [index, segment] of segments.entries()) {
    const path = url.path as string[];
    const isLast = index === segments.length - 1;
    const dots = segment.replaceAll(/%2e/gi, '.');
    if (dots === '..') shortenPath(url);
    if (dots === '..' || dots === '.') {
      if (isLast) path.push('');
    } else if (url.scheme === 'file' && path.length === 0 && isDriveLetter(segment)) path.push(`${segment.charAt(0)}:`);
    else path.push(percentEncode(segment, 'path'));
  }
  return url;
}

function shortenPath(url: UrlRecord): void {
  const path = url.path as string[];
  if (url.scheme === 'file' && path.length === 1 && /^[A-Za-z]:$/.test(path[0] ?? '')) return;
  path.pop();
}

function isDriveLetter(text: string): boolean {
  return /^[A-Za-z][:|]$/.test(text);
}

function parseFile({ rest, query }: UrlPieces, base: UrlRecord | undefined): UrlRecord {
  const url: UrlRecord = { ...emptyUrl('file'), host: '' };
  const startsWithDrive = (text: string): boolean => /^[A-Za-z][:|](?:[/\\]|$)/.test(text);
  if (/^[/\\]{2}/.test(rest)) return parseFileHost(url, rest.slice(2));
  if (/^[/\\]/.test(rest)) {
    const drive = base?.path[0] ?? '';
    url.host = base?.host ?? '';
    if (/^[A-Za-z]:$/.test(drive) && !startsWithDrive(rest.slice(1))) url.path = [drive];
    return parsePath(url, rest.slice(1));
  }
  if (base === undefined) return parsePath(url, rest);
  url.host = base.host;
  url.path = base.path.slice() as string[];
  if (rest === '') return { ...url, query: query === null ? base.query : null };
  if (startsWithDrive(rest)) url.path = [];
  else shortenPath(url);
  return parsePath(url, rest);
}

function parseFileHost(url: UrlRecord, text: string): UrlRecord {
  const end = text.search(/[/\\]/);
  const host = end === -1 ? text : text.slice(0, end);
  if (isDriveLetter(host)) return parsePath(url, text);
  const parsed = host === '' ? '' : parseHost(host, true);
  url.host = parsed === 'localhost' ? '' : parsed;
  return parsePathStart(url, end === -1 ? '' : text.slice(end));
}

export function serializePath(url: UrlRecord): string {
  return typeof url.path === 'string' ? url.path : url.path.map((segment) => `/${segment}`).join('');
}

export function serializeUrl(url: UrlRecord): string {
  const credentials =
    url.username === '' && url.password === ''
      ? ''
      : `${url.username}${url.password === '' ? '' : `:${url.password}`}@`;
  const port = url.port === null ? '' : `:${url.port}`;
  const isAmbiguous = url.host === null && typeof url.path !== 'string' && url.path.length > 1 && url.path[0] === '';
  const authority = url.host === null ? (isAmbiguous ? '/.' : '') : `//${credentials}${url.host}${port}`;
  const query = url.query === null ? '' : `?${url.query}`;
  const fragment = url.fragment === null ? '' : `#${url.fragment}`;
  return `${url.scheme}:${authority}${serializePath(url)}${query}${fragment}`;
}

/** The functions of this module, for the guest. */
export const URL_PARSER_PARTS = [
  defaultPort,
  isSpecialScheme,
  splitUrl,
  encodeQuery,
  parseUrl,
  emptyUrl,
  parseAbsolute,
  parseRelative,
  parseReference,
  parseAuthority,
  setAddress,
  parsePort,
  parsePathStart,
  parsePath,
  shortenPath,
  isDriveLetter,
  parseFile,
  parseFileHost,
  serializePath,
  serializeUrl,
];
