import { suggestName } from '../../lib/suggest.ts';
import { isTemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { dottedPath } from '../findings.ts';
import type { Finding, FieldPath, PatternKind, PatternRules } from '../findings.ts';
import { ACTION_CATEGORIES, ACTION_TYPES, expandActions } from '../v1alpha1/actions.ts';

type Texts = readonly (string | undefined)[] | undefined;

/** The present items, each with its path. */
export function* itemsOf<T>(list: readonly (T | undefined)[] | undefined, path: FieldPath): Generator<[T, FieldPath]> {
  for (const [index, item] of (list ?? []).entries()) {
    if (item !== undefined) yield [item, [...path, index]];
  }
}

export function present<T>(list: readonly (T | undefined)[] | undefined): T[] {
  return (list ?? []).filter((item) => item !== undefined);
}

export function quoted(text: string): string {
  return `"${printable(text, 80)}"`;
}

export function checkPattern(
  rules: PatternRules,
  kind: PatternKind,
  text: string | undefined,
  path: FieldPath,
): Finding[] {
  const error = text === undefined ? undefined : rules.patternError(text, kind);
  if (text === undefined || error === undefined) return [];
  const fix = 'correct the pattern; see docs/reference/patterns.md';
  return [{ path, rule: 'pattern', message: `${dottedPath(path)}: ${error}`, fix }];
}

export function checkPatterns(rules: PatternRules, kind: PatternKind, list: Texts, path: FieldPath): Finding[] {
  return [...itemsOf(list, path)].flatMap(([text, at]) => checkPattern(rules, kind, text, at));
}

/** A rule with an unregistered action type would silently have no effect. `custom`: those that the policy registers. */
export function checkActions(list: Texts, path: FieldPath, custom: readonly string[]): Finding[] {
  const findings: Finding[] = [];
  for (const [entry, at] of itemsOf(list, path)) {
    if (expandActions(entry, custom).length > 0) continue;
    const near = suggestName(entry, [...ACTION_TYPES, ...ACTION_CATEGORIES, ...custom]);
    findings.push({
      path: at,
      rule: 'action-type',
      message: `${dottedPath(at)} ${quoted(entry)} is not a registered action type`,
      fix:
        near === undefined
          ? `write category:action, or a category alone; categories: ${ACTION_CATEGORIES.join(', ')}; register custom ones in spec.actions`
          : `did you mean "${near}"?`,
    });
  }
  return findings;
}

export interface Measure {
  path: FieldPath;
  value: string | undefined;
  parse: (text: string) => number;
  minimum: number;
  maximum?: number;
  /** The allowed values, for the fix. */
  allowed: string;
}

/** Strings that encode amounts must be readable and within their bounds. */
export function checkMeasures(measures: readonly Measure[]): Finding[] {
  return measures.flatMap(({ path, value, parse, minimum, maximum, allowed }): Finding[] => {
    if (value === undefined) return [];
    try {
      const amount = parse(value);
      if (amount >= minimum && (maximum === undefined || amount <= maximum)) return [];
      return [{ path, rule: 'range', message: `${dottedPath(path)} is ${quoted(value)}`, fix: `write ${allowed}` }];
    } catch (error) {
      if (!isTemperError(error)) throw error;
      return [{ path, rule: 'range', message: `${dottedPath(path)}: ${error.message}`, fix: `write ${allowed}` }];
    }
  });
}
