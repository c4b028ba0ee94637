/** A location inside an object: member names and list indexes. */
export type FieldPath = readonly (string | number)[];

/** A violation of a validation rule. The loader adds file, line and column. */
export interface Finding {
  path: FieldPath;
  /** Stable name of the violated rule. */
  rule: string;
  message: string;
  fix: string;
}

/**
 * A spec without the values that violate its schema, so that the cross-field checks can run on the rest.
 * Every present value has the right type; every value may be missing.
 */
export type ValidPart<T> = T extends readonly (infer I)[]
  ? readonly (ValidPart<I> | undefined)[]
  : T extends object
    ? { readonly [K in keyof T]?: ValidPart<T[K]> | undefined }
    : T;

/** `spec.arguments[0].tool` */
export function dottedPath(path: FieldPath): string {
  let text = '';
  for (const segment of path) {
    if (typeof segment === 'number') text += `[${segment}]`;
    else if (/^[A-Za-z_][\w-]*$/.test(segment)) text += text === '' ? segment : `.${segment}`;
    else text += `[${JSON.stringify(segment)}]`;
  }
  return text;
}

/** What a pattern matches. Each kind has its own separator and normal form. */
export type PatternKind = 'tool' | 'model' | 'path' | 'host' | 'key' | 'name' | 'event';

/** The part of the pattern language that the checks need. */
export interface PatternRules {
  /** Why the text is not a valid pattern, in a sentence that quotes the text. Undefined for a valid pattern. */
  patternError(text: string, kind: PatternKind): string | undefined;
  /** Does the ceiling match everything that the pattern matches? An empty ceiling matches nothing. */
  covers(ceiling: readonly string[], text: string, kind: PatternKind): boolean;
}
