import { subjectError } from '../../events/subject.ts';
import { DEFAULT_PORT, parseHost, parsePort, splitPort } from './hosts.ts';

/** What a pattern matches. Each kind has its own separator and normal form. */
export type SubjectKind = 'tool' | 'model' | 'path' | 'host' | 'key' | 'action' | 'name' | 'event';

export const SEPARATORS: Readonly<Record<SubjectKind, string>> = {
  tool: '',
  name: '',
  model: '/',
  path: '/',
  host: '.',
  key: '.',
  action: ':',
  event: '.',
};

/** The first segment of an absolute path. No other segment contains a slash, and only a literal or `**` matches it. */
export const ROOT = '/';

const MAX_SUBJECT = 4_096;

/** A text in the normal form of its kind, split into segments. */
export interface Subject {
  segments: readonly string[];
  /** Equal for two equivalent texts. */
  canonical: string;
  /** An IP address; only a pattern of the same address matches it. */
  address: boolean;
}

/** The normal form, or undefined when the text is not a valid subject of that kind; no pattern matches an invalid subject. */
export function parseSubject(kind: SubjectKind, text: string): Subject | undefined {
  if (text === '' || text.length > MAX_SUBJECT || text.includes('\0')) return undefined;
  switch (kind) {
    case 'tool':
      return single(text.trim().toLowerCase());
    case 'name':
      return single(text);
    case 'path':
      return pathSubject(text);
    case 'host':
      return hostSubject(text);
    case 'event':
      return eventSubject(text);
    case 'model':
    case 'key':
    case 'action': {
      const segments = text.split(SEPARATORS[kind]);
      return segments.includes('') ? undefined : { segments, canonical: text, address: false };
    }
    default:
      return kind satisfies never;
  }
}

function single(text: string): Subject | undefined {
  return text === '' ? undefined : { segments: [text], canonical: text, address: false };
}

function pathSubject(text: string): Subject | undefined {
  const segments = pathSegments(text);
  return typeof segments === 'string' ? undefined : { segments, canonical: joinPath(segments), address: false };
}

function eventSubject(text: string): Subject | undefined {
  if (subjectError(text) !== undefined) return undefined;
  return { segments: text.split('.'), canonical: text, address: false };
}

function hostSubject(text: string): Subject | undefined {
  const split = splitPort(text);
  if (split === undefined) return undefined;
  const port = parsePort(split.port ?? DEFAULT_PORT);
  const host = parseHost(split.host);
  if (port === undefined || host === undefined) return undefined;
  return {
    segments: [port, ...host.labels],
    canonical: `${port} ${host.labels.join('.')}`,
    address: host.address,
  };
}

/** The segments of a POSIX path without `.` and empty segments, or the reason why the path is invalid. Nothing is decoded. */
export function pathSegments(text: string): string[] | PathFault {
  if (text.includes('\0')) return 'contains a NUL';
  if (text.includes('\\')) return 'contains a backslash';
  if (text.includes('%') && hasEncodedDotOrSlash(text)) return 'contains an encoded dot or slash';
  const segments = text.split('/').filter((segment) => segment !== '' && segment !== '.');
  if (segments.includes('..')) return 'contains a ".." segment';
  return text.startsWith('/') ? [ROOT, ...segments] : segments;
}

export type PathFault =
  | 'contains a NUL'
  | 'contains a backslash'
  | 'contains an encoded dot or slash'
  | 'contains a ".." segment';

function hasEncodedDotOrSlash(text: string): boolean {
  const lower = text.toLowerCase();
  return lower.includes('%2e') || lower.includes('%2f') || lower.includes('%5c') || lower.includes('%00');
}

export function joinPath(segments: readonly string[]): string {
  if (segments[0] === ROOT) return `/${segments.slice(1).join('/')}`;
  return segments.length === 0 ? '.' : segments.join('/');
}
