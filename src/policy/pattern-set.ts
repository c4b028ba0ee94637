import { compilePattern, matchesSubject } from './patterns.ts';
import type { Pattern } from './patterns.ts';
import { parseSubject } from './subjects.ts';
import type { Subject, SubjectKind } from './subjects.ts';

/** Throws TEMPER_PATTERN_INVALID. An absent list is an empty one, and an empty one stands for nothing. */
export function patternSet(texts: readonly string[] | undefined, kind: SubjectKind): PatternSet {
  return new PatternSet(
    (texts ?? []).map((text) => compilePattern(text, kind)),
    kind,
  );
}

/** Patterns of one list, made ready for many questions. The order in the list means nothing. */
export class PatternSet {
  readonly patterns: readonly Pattern[];
  readonly #kind: SubjectKind;
  readonly #literals: ReadonlySet<string>;
  readonly #wild: readonly Pattern[];

  constructor(patterns: readonly Pattern[], kind: SubjectKind) {
    this.#kind = kind;
    this.patterns = patterns;
    this.#literals = new Set(this.patterns.flatMap((pattern) => pattern.literal ?? []));
    this.#wild = this.patterns.filter((pattern) => pattern.literal === undefined);
  }

  get size(): number {
    return this.patterns.length;
  }

  has(text: string): boolean {
    return this.covers(parseSubject(this.#kind, text));
  }

  /** For a subject that was read before; one that could not be read is covered by nothing. */
  covers(subject: Subject | undefined): boolean {
    if (subject === undefined) return false;
    if (this.#literals.has(subject.canonical)) return true;
    for (const pattern of this.#wild) {
      if (matchesSubject(pattern, subject)) return true;
    }
    return false;
  }

  where(keep: (pattern: Pattern) => boolean): PatternSet {
    return new PatternSet(this.patterns.filter(keep), this.#kind);
  }

  /** The pattern that stands for the text, for people. */
  find(text: string): string | undefined {
    const subject = parseSubject(this.#kind, text);
    if (subject === undefined) return undefined;
    return this.patterns.find((pattern) => matchesSubject(pattern, subject))?.text;
  }

  /** The list as people wrote it, cut short. */
  describe(): string {
    if (this.patterns.length === 0) return 'nothing';
    const shown = this.patterns.slice(0, 6).map((pattern) => `"${pattern.text}"`);
    return this.patterns.length > 6 ? `${shown.join(', ')} and ${this.patterns.length - 6} more` : shown.join(', ');
  }
}
