import { compilePattern, matchesSubject } from './pattern.ts';
import type { Pattern } from './pattern.ts';
import { PatternIndex } from './pattern-index.ts';
import { parseSubject } from './pattern-subjects.ts';
import type { Subject, SubjectKind } from './pattern-subjects.ts';

/** Compiles a list of patterns. Throws TEMPER_PATTERN_INVALID. An absent list counts as empty; an empty list matches nothing. */
export function patternSet(texts: readonly string[] | undefined, kind: SubjectKind): PatternSet {
  return new PatternSet(
    (texts ?? []).map((text) => compilePattern(text, kind)),
    kind,
  );
}

/** A compiled list of patterns. The order has no meaning. */
export class PatternSet {
  readonly patterns: readonly Pattern[];
  readonly #kind: SubjectKind;
  readonly #literals: ReadonlySet<string>;
  readonly #wildcards: PatternIndex;

  constructor(patterns: readonly Pattern[], kind: SubjectKind) {
    this.#kind = kind;
    this.patterns = patterns;
    this.#literals = new Set(this.patterns.flatMap((pattern) => pattern.literal ?? []));
    this.#wildcards = new PatternIndex(this.patterns.filter((pattern) => pattern.literal === undefined));
  }

  get size(): number {
    return this.patterns.length;
  }

  has(text: string): boolean {
    return this.covers(parseSubject(this.#kind, text));
  }

  /** For a parsed subject. Undefined is a subject that could not be parsed; no pattern matches it. */
  covers(subject: Subject | undefined): boolean {
    if (subject === undefined) return false;
    return this.#literals.has(subject.canonical) || this.#wildcards.matches(subject);
  }

  filter(predicate: (pattern: Pattern) => boolean): PatternSet {
    return new PatternSet(this.patterns.filter(predicate), this.#kind);
  }

  /** The first pattern that matches the text, for messages. */
  find(text: string): string | undefined {
    const subject = parseSubject(this.#kind, text);
    if (subject === undefined) return undefined;
    return this.patterns.find((pattern) => matchesSubject(pattern, subject))?.text;
  }

  /** The patterns as written, truncated, for messages. */
  describe(): string {
    if (this.patterns.length === 0) return 'nothing';
    const shown = this.patterns.slice(0, 6).map((pattern) => `"${pattern.text}"`);
    return this.patterns.length > 6 ? `${shown.join(', ')} and ${this.patterns.length - 6} more` : shown.join(', ');
  }
}
