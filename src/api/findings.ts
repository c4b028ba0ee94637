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
