/** Where inside an object: member names and list positions. */
export type Path = readonly (string | number)[];

/** What a check found wrong. The loader adds file, line and column. */
export interface Finding {
  path: Path;
  /** Stable name of the rule that is broken. */
  rule: string;
  message: string;
  fix: string;
}

/**
 * A spec from which everything of a wrong type was taken out, so that the checks between fields can speak about the rest.
 * What is there has the right type; anything may be missing.
 */
export type Sound<T> = T extends readonly (infer I)[]
  ? readonly (Sound<I> | undefined)[]
  : T extends object
    ? { readonly [K in keyof T]?: Sound<T[K]> | undefined }
    : T;

/** `spec.arguments[0].tool` */
export function dottedPath(path: Path): string {
  let text = '';
  for (const segment of path) {
    if (typeof segment === 'number') text += `[${segment}]`;
    else if (/^[A-Za-z_][\w-]*$/.test(segment)) text += text === '' ? segment : `.${segment}`;
    else text += `[${JSON.stringify(segment)}]`;
  }
  return text;
}

/** What a pattern is about. Each kind has its own separator and normal form. */
export type PatternKind = 'tool' | 'model' | 'path' | 'host' | 'key' | 'name';

/** What the checks need of the pattern language. */
export interface PatternRules {
  /** Why the text is no pattern, in a sentence that shows it; undefined when it is one. */
  flaw(text: string, kind: PatternKind): string | undefined;
  /** Is everything the pattern stands for within what the ceiling stands for? An empty ceiling stands for nothing. */
  covers(ceiling: readonly string[], text: string, kind: PatternKind): boolean;
}
