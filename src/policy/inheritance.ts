import type { AgentSpec } from '../api/v1alpha1/agent.ts';
import type { PatternKind } from '../api/findings.ts';
import { grantFields } from './grants.ts';
import type { GrantProblem } from './grants.ts';
import { PATTERN_RULES } from './pattern-rules.ts';

/** What a child may take from its parent, and what binds both. */
export type Inheritable = Pick<AgentSpec, 'grants' | 'denyTools' | 'arguments'>;

/**
 * Is a child no more than its parent? Every grant of the child is covered by grants of the parent, by language; every tool
 * the parent is denied stays denied; every argument pinned for the parent is pinned at least as tightly. Empty: it is.
 * Throws TEMPER_PATTERN_INVALID.
 */
export function withinParent(child: Inheritable, parent: Inheritable): GrantProblem[] {
  return [...grantProblems(child, parent), ...denyProblems(child, parent), ...pinProblems(child, parent)];
}

function grantProblems(child: Inheritable, parent: Inheritable): GrantProblem[] {
  const own = grantFields(parent.grants);
  return grantFields(child.grants).flatMap(([field, patterns, kind], index) => {
    const [, outer] = own[index] ?? [];
    return beyond(patterns, outer, kind).map((pattern) => ({
      field,
      pattern,
      message: `${field} "${pattern}" exceeds the parent (it has ${listed(outer)}); a child may only have what its parent has`,
    }));
  });
}

/** A child that leaves out a denial could call what its parent may not. */
function denyProblems(child: Inheritable, parent: Inheritable): GrantProblem[] {
  return beyond(parent.denyTools, child.denyTools, 'tool').map((pattern) => ({
    field: 'spec.denyTools',
    pattern,
    message: `denyTools "${pattern}" of the parent is missing; a child is denied what its parent is denied`,
  }));
}

function pinProblems(child: Inheritable, parent: Inheritable): GrantProblem[] {
  return (parent.arguments ?? [])
    .filter((pin) => !(child.arguments ?? []).some((own) => pinsAtLeast(own, pin)))
    .map((pin) => ({
      field: 'spec.arguments',
      pattern: pin.tool,
      message: `argument "${pin.argument}" of tool "${pin.tool}" is pinned to ${listed(pin.allow)} for the parent; pin it for the child as tightly`,
    }));
}

type Pin = NonNullable<AgentSpec['arguments']>[number];

function pinsAtLeast(own: Pin, pin: Pin): boolean {
  return (
    own.argument === pin.argument &&
    PATTERN_RULES.covers([own.tool], pin.tool, 'tool') &&
    beyond(own.allow, pin.allow, 'path').length === 0
  );
}

/** The patterns of inner that outer does not cover. */
function beyond(
  inner: readonly string[] | undefined,
  outer: readonly string[] | undefined,
  kind: PatternKind,
): string[] {
  return (inner ?? []).filter((text) => !PATTERN_RULES.covers(outer ?? [], text, kind));
}

function listed(patterns: readonly string[] | undefined): string {
  return patterns === undefined || patterns.length === 0 ? 'nothing' : patterns.map((text) => `"${text}"`).join(', ');
}
