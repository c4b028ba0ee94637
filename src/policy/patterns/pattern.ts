import { subjectPatternError } from '../../events/subject.ts';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { DEFAULT_PORT, type Host, parseHost, parsePort, splitPort } from './hosts.ts';
import { sharedSuffixError } from './public-suffixes.ts';
import { ROOT, SEPARATORS, joinPath, parseSubject, pathSegments } from './pattern-subjects.ts';
import type { Subject, SubjectKind } from './pattern-subjects.ts';

/** `**`, or the literal pieces between the stars of one segment: `csv_*` is `['csv_', '']`, a literal has one piece. */
export type Segment = '**' | readonly string[];

export interface Pattern {
  readonly kind: SubjectKind;
  /** As written in the manifest. */
  readonly text: string;
  readonly segments: readonly Segment[];
  /** The only subject it matches, in normal form; undefined with a wildcard. */
  readonly literal: string | undefined;
  /** The pattern is one IP address. */
  readonly address: boolean;
}

const MAX_PATTERN = 256;

/** Throws TEMPER_PATTERN_INVALID with the position. The language is described in `docs/reference/patterns.md`. */
export function compilePattern(text: string, kind: SubjectKind): Pattern {
  if (text.trim() === '') throw invalid(text, kind, 0, 'it is empty');
  if (text.length > MAX_PATTERN) throw invalid(text, kind, MAX_PATTERN, 'it is longer than 256 characters');
  if (text.includes('\0')) throw invalid(text, kind, text.indexOf('\0'), 'it contains a NUL');
  if (kind === 'host') return hostPattern(text);
  if (kind === 'event') return eventPattern(text);
  const segments = kind === 'path' ? compilePath(text) : compilePlain(text, kind);
  // A trailing star of a key matches any depth: `self.*` matches `self.notes.today`.
  if (kind === 'key' && isStar(segments.at(-1))) segments.push('**');
  return { kind, text, segments, literal: literalOf(kind, segments), address: false };
}

/** Does the pattern match the text? No pattern, not even `**`, matches a text that is not a valid subject of its kind. */
export function matches(pattern: Pattern, text: string): boolean {
  const subject = parseSubject(pattern.kind, text);
  return subject !== undefined && matchesSubject(pattern, subject);
}

/** Greedy over segments, backtracking only to the last `**`: at most (pattern segments × subject segments) steps. */
export function matchesSubject(pattern: Pattern, subject: Subject): boolean {
  if (pattern.literal !== undefined) return pattern.literal === subject.canonical;
  if (pattern.address !== subject.address) return false;
  const { segments } = pattern;
  const texts = subject.segments;
  let cursor = 0;
  let textIndex = 0;
  let retryCursor = -1;
  let retryTextIndex = 0;
  while (textIndex < texts.length) {
    const segment = segments[cursor];
    if (segment === '**') {
      retryCursor = cursor;
      retryTextIndex = textIndex;
      cursor += 1;
    } else if (segment !== undefined && matchesSegment(segment, texts[textIndex] ?? '')) {
      cursor += 1;
      textIndex += 1;
    } else if (retryCursor >= 0) {
      retryTextIndex += 1;
      textIndex = retryTextIndex;
      cursor = retryCursor + 1;
    } else {
      return false;
    }
  }
  while (segments[cursor] === '**') cursor += 1;
  return cursor === segments.length;
}

/** Matches the first piece at the start, the last at the end and the others leftmost in between, without backtracking. */
function matchesSegment(pieces: readonly string[], text: string): boolean {
  const first = pieces[0] ?? '';
  if (pieces.length === 1) return first === text;
  if (text === ROOT) return false;
  const last = pieces.at(-1) ?? '';
  if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last)) return false;
  let from = first.length;
  const end = text.length - last.length;
  for (let index = 1; index < pieces.length - 1; index += 1) {
    const piece = pieces[index] ?? '';
    const found = text.indexOf(piece, from);
    if (found < 0 || found + piece.length > end) return false;
    from = found + piece.length;
  }
  return true;
}

function compilePlain(text: string, kind: SubjectKind): Segment[] {
  const separator = SEPARATORS[kind];
  if (separator === '') {
    const written = kind === 'tool' ? text.trim().toLowerCase() : text;
    return [piecesOf(written)];
  }
  let position = 0;
  return text.split(separator).map((segment) => {
    const start = position;
    position += segment.length + separator.length;
    if (segment === '') throw invalid(text, kind, start, `a segment is empty; write one "${separator}" between two`);
    return segmentOf(segment, text, kind, start);
  });
}

function compilePath(text: string): Segment[] {
  const segments = pathSegments(text);
  if (typeof segments === 'string') throw invalid(text, 'path', positionOfFault(text), `it ${segments}`);
  return segments.map((segment) => segmentOf(segment, text, 'path', text.indexOf(segment)));
}

function positionOfFault(text: string): number {
  const positions = ['\\', '%', '..'].map((mark) => text.indexOf(mark)).filter((position) => position >= 0);
  return Math.min(...positions, text.length);
}

function segmentOf(segment: string, text: string, kind: SubjectKind, start: number): Segment {
  if (segment === '**') return '**';
  const double = segment.indexOf('**');
  if (double >= 0) throw invalid(text, kind, start + double, '"**" must be a whole segment; inside one write "*"');
  return piecesOf(segment);
}

/** Several adjacent stars are equal to one. */
function piecesOf(segment: string): readonly string[] {
  const pieces = segment.split('*');
  return pieces.filter((piece, index) => piece !== '' || index === 0 || index === pieces.length - 1);
}

function isStar(segment: Segment | undefined): boolean {
  return segment !== undefined && segment !== '**' && segment.length === 2 && segment[0] === '' && segment[1] === '';
}

/** A NATS subject: `*` is one token, and a `>` at the end is one or more. */
function eventPattern(text: string): Pattern {
  const error = subjectPatternError(text);
  if (error !== undefined) throw invalid(text, 'event', 0, error);
  const any: Segment = ['', ''];
  const segments = text
    .split('.')
    .flatMap((token): Segment[] => (token === '>' ? [any, '**'] : token === '*' ? [any] : [[token]]));
  return { kind: 'event', text, segments, literal: literalOf('event', segments), address: false };
}

/** `*` and `**` match any name; a leading `*.` matches one label, `**.` any number. Any other wildcard could match names of other owners. */
function hostPattern(text: string): Pattern {
  const slash = text.indexOf('/');
  if (slash >= 0) throw invalid(text, 'host', slash, 'write a host alone: no scheme, no path, no range');
  const split = splitPort(text.trim());
  if (split === undefined) throw invalid(text, 'host', text.indexOf(':'), 'write an IPv6 address in brackets');
  const port = split.port === '*' ? '*' : parsePort(split.port ?? DEFAULT_PORT);
  if (port === undefined) {
    throw invalid(text, 'host', text.lastIndexOf(':') + 1, 'the port must be 1 to 65535, or "*" for any');
  }
  const { head, name } = splitWildcard(split.host);
  const host = name === '' && head.length > 0 ? { address: false, labels: [] } : parseHost(name);
  if (host === undefined) throw invalid(text, 'host', positionOfHostFault(split.host, name), hostFault(name));
  const error = wildcardError(head, host);
  if (error !== undefined) throw invalid(text, 'host', split.host.length - name.length, error);
  const plain = head.length === 0 && port !== '*';
  return {
    kind: 'host',
    text,
    segments: [piecesOf(port), ...head, ...host.labels.map((label) => [label])],
    literal: plain ? parseSubject('host', `${host.labels.join('.')}:${port}`)?.canonical : undefined,
    address: host.address,
  };
}

function splitWildcard(host: string): { head: Segment[]; name: string } {
  if (host === '*' || host === '**') return { head: ['**'], name: '' };
  if (host.startsWith('**.')) return { head: ['**'], name: host.slice(3) };
  if (host.startsWith('*.')) return { head: [['', '']], name: host.slice(2) };
  return { head: [], name: host };
}

function wildcardError([wildcard]: readonly Segment[], { address, labels }: Host): string | undefined {
  if (wildcard === undefined || labels.length === 0) return undefined;
  return address ? 'an IP address takes no wildcard' : sharedSuffixError(labels, wildcard === '**');
}

function positionOfHostFault(host: string, name: string): number {
  const start = host.length - name.length;
  const star = host.indexOf('*', start);
  return star >= 0 ? star : start;
}

function hostFault(name: string): string {
  if (name.includes('*')) return 'a wildcard may only be the whole first label, as in "*.example.com"';
  return 'it is not a host name: write labels joined by dots';
}

function literalOf(kind: SubjectKind, segments: readonly Segment[]): string | undefined {
  const texts: string[] = [];
  for (const segment of segments) {
    if (segment === '**' || segment.length !== 1) return undefined;
    texts.push(segment[0] ?? '');
  }
  return kind === 'path' ? joinPath(texts) : texts.join(SEPARATORS[kind]);
}

function invalid(text: string, kind: SubjectKind, position: number, why: string): TemperError {
  const at = Math.max(0, position) + 1;
  return new TemperError(
    'TEMPER_PATTERN_INVALID',
    `pattern "${printable(text, 128)}" (${kind}), character ${at}: ${why}; see the pattern reference`,
    { details: { pattern: printable(text, 256), kind, position: at, why } },
  );
}
