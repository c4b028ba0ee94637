import type { FieldPath, PatternKind, PatternRules } from '../../../api/findings.ts';
import { type ImportLog, isLimiting } from '../keys/import-log.ts';

const MAX_PATTERNS = 100;
const MAX_PATTERN_LENGTH = 256;

/** The patterns of one field. Logs for each where it went, or why it did not. */
export class GrantList {
  readonly field: string;
  readonly #kind: PatternKind;
  readonly #rules: PatternRules;
  readonly #log: ImportLog;
  readonly #patterns: string[] = [];

  constructor(field: string, kind: PatternKind, rules: PatternRules, log: ImportLog) {
    this.field = field;
    this.#kind = kind;
    this.#rules = rules;
    this.#log = log;
  }

  get patterns(): readonly string[] {
    return this.#patterns;
  }

  /** Adds the pattern for the text of the manifest. `note`: what changes with it; `hint`: what it needs besides. */
  add(path: FieldPath, text: string, pattern = text, note?: string, hint?: string): void {
    const error = this.#errorOf(pattern);
    if (error !== undefined) {
      if (isLimiting(path)) this.#log.refuseFile(path, error, text);
      else this.#log.add(path, 'NotImported', { value: text, note: error });
      return;
    }
    if (!this.#patterns.includes(pattern)) this.#patterns.push(pattern);
    const result = pattern === text && note === undefined ? 'Imported' : 'Changed';
    const change = note ?? (pattern === text ? undefined : `as ${pattern}`);
    const notes = [change, hint].filter((one) => one !== undefined);
    this.#log.add(path, result, {
      value: text,
      field: `${this.field}[${this.#patterns.indexOf(pattern)}]`,
      ...(notes.length === 0 ? {} : { note: notes.join('; ') }),
    });
  }

  #errorOf(pattern: string): string | undefined {
    if (pattern.length > MAX_PATTERN_LENGTH) return `a pattern has at most ${MAX_PATTERN_LENGTH} characters`;
    const error = pattern === '' ? 'the pattern is empty' : this.#rules.patternError(pattern, this.#kind);
    if (error !== undefined) return `not a pattern of this kind (${error})`;
    if (this.#patterns.length >= MAX_PATTERNS && !this.#patterns.includes(pattern))
      return `a list has at most ${MAX_PATTERNS} patterns`;
    return undefined;
  }
}
