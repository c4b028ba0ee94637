import { matchesSubject } from './pattern.ts';
import type { Pattern, Segment } from './pattern.ts';
import type { Subject } from './pattern-subjects.ts';

/** Shorter lists are searched one by one. */
const MIN_INDEXED = 16;
/** Lengths of the texts by which patterns are found. A pattern has the longest one that its own text contains. */
const LENGTHS = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256];
/** Stands between two segments. No pattern and no subject contains it. */
const BOUNDARY = '\0';

type TextsByLength = Map<number, Map<string, Pattern[]>>;

interface IndexedTexts {
  beginnings: TextsByLength;
  ends: TextsByLength;
  /** With a wildcard at both ends. */
  others: Pattern[];
}

/**
 * The patterns of a list by the text with which every subject that they match begins, or ends. A look-up compares a subject only with
 * patterns whose text it has, and with those that have a wildcard at both ends; `matchesSubject` decides. The order has no meaning.
 */
export class PatternIndex {
  readonly #patterns: readonly Pattern[];
  #texts: IndexedTexts | undefined;

  constructor(patterns: readonly Pattern[]) {
    this.#patterns = patterns;
  }

  matches(subject: Subject): boolean {
    if (this.#patterns.length < MIN_INDEXED) return matchesOne(this.#patterns, subject);
    // Many lists are compiled and never asked.
    const { beginnings, ends, others } = (this.#texts ??= textsOf(this.#patterns));
    if (matchesOne(others, subject)) return true;
    const text = subject.segments.join(BOUNDARY);
    return matchesWith(beginnings, text, subject, firstOf) || matchesWith(ends, text, subject, lastOf);
  }
}

function textsOf(patterns: readonly Pattern[]): IndexedTexts {
  const texts: IndexedTexts = { beginnings: new Map(), ends: new Map(), others: [] };
  for (const pattern of patterns) {
    const [beginning, end] = [beginningOf(pattern.segments), endOf(pattern.segments)];
    if (beginning.length + end.length === 0) texts.others.push(pattern);
    else if (beginning.length >= end.length) add(texts.beginnings, beginning, pattern, firstOf);
    else add(texts.ends, end, pattern, lastOf);
  }
  return texts;
}

function matchesWith(texts: TextsByLength, text: string, subject: Subject, part: typeof firstOf): boolean {
  for (const [length, patterns] of texts) {
    if (length > text.length) continue;
    const found = patterns.get(part(text, length));
    if (found !== undefined && matchesOne(found, subject)) return true;
  }
  return false;
}

function matchesOne(patterns: readonly Pattern[], subject: Subject): boolean {
  for (const pattern of patterns) if (matchesSubject(pattern, subject)) return true;
  return false;
}

function add(texts: TextsByLength, text: string, pattern: Pattern, part: typeof firstOf): void {
  const length = LENGTHS.findLast((one) => one <= text.length) ?? 0;
  const ofLength = texts.get(length) ?? new Map<string, Pattern[]>();
  texts.set(length, ofLength);
  const key = part(text, length);
  const known = ofLength.get(key);
  if (known === undefined) ofLength.set(key, [pattern]);
  else known.push(pattern);
}

function firstOf(text: string, length: number): string {
  return text.slice(0, length);
}

function lastOf(text: string, length: number): string {
  return text.slice(text.length - length);
}

/** The literal text before the first wildcard. */
function beginningOf(segments: readonly Segment[]): string {
  const texts: string[] = [];
  for (const segment of segments) {
    if (segment === '**') break;
    texts.push(segment[0] ?? '');
    if (segment.length > 1) break;
  }
  return texts.join(BOUNDARY);
}

/** The literal text after the last wildcard. */
function endOf(segments: readonly Segment[]): string {
  let text: string | undefined;
  for (let index = segments.length - 1; index >= 0; index -= 1) {
    const segment = segments[index];
    if (segment === undefined || segment === '**') break;
    const piece = segment.at(-1) ?? '';
    text = text === undefined ? piece : `${piece}${BOUNDARY}${text}`;
    if (segment.length > 1) break;
  }
  return text ?? '';
}
