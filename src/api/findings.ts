/** A location inside an object: member names and list indexes. */
export type FieldPath = readonly (string | number)[];

/** The names of all validation rules, of problems and of warnings. Users decide by them; `docs/reference/manifests.md` describes each. */
export const RULES = [
  'yaml-syntax',
  'yaml-tabs',
  'encoding',
  'duplicate-key',
  'file-size',
  'document-count',
  'document-size',
  'depth',
  'alias-bomb',
  'api-version',
  'kind',
  'manifest',
  'required',
  'unknown-field',
  'type',
  'enum',
  'action-type',
  'pattern',
  'length',
  'items',
  'range',
  'schema',
  'duplicate-item',
  'duplicate-object',
  'unique',
  'name',
  'overlap',
  'level-exists',
  'level-order',
  'level-name',
  'elevated-needs-human',
  'strategy',
  'decay',
  'action-risk',
  'high-risk-needs-approver',
  'approve-needs-timeout',
  'apis-need-sandbox',
  'code-stores-sources',
  'programs-explore',
  'context-grant',
  'hook-tool',
  'a2a-callers',
  'returns',
  'persistent-returns',
  'schedule',
  'schedule-mode',
  'quiet-hours',
  'trigger',
  'reference',
  'grant-exceeds-policy',
  'agent-quota',
  'digest',
  'mode',
  'step-name',
  'requires',
  'json-text',
  'artifact-size',
  'withheld-source',
  'capability-tool',
  'capability-text',
  'skill-size',
  'mcp-connection',
  'exactly-one',
  'schema-size',
  'subject-fits-type',
  'not-in-force',
  'judge-missing',
  'judge-is-author',
  'grant-without-tool',
  'unknown-tool',
  'grant-constrained',
  'shell-grant',
  'mcp-digest',
  'level-category',
] as const;

export type RuleName = (typeof RULES)[number];

/** A violation of a validation rule. The loader adds file, line and column. */
export interface Finding {
  path: FieldPath;
  /** Stable name of the violated rule. */
  rule: RuleName;
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
