import type { AgentSpec } from '../api/v1alpha1/agent.ts';
import type { PatternKind } from '../api/findings.ts';
import { grantFields } from './grants.ts';
import type { GrantProblem } from './grants.ts';
import { PATTERN_RULES } from './patterns/pattern-rules.ts';

/** The permissions of an agent that are compared between parent and child. */
export type Inheritable = Pick<AgentSpec, 'grants' | 'denyTools' | 'arguments'>;

/**
 * Checks that a child agent has no more permissions than its parent: grants of the parent cover every grant of the child (compared as
 * languages), every tool denied to the parent is denied to the child, and every argument pinned for the parent is pinned at least as
 * tightly. Returns an empty list when the child stays within its parent.
 * Throws TEMPER_PATTERN_INVALID.
 */
export function withinParent(child: Inheritable, parent: Inheritable): GrantProblem[] {
  return [...grantProblems(child, parent), ...denyProblems(child, parent), ...pinProblems(child, parent)];
}

function grantProblems(child: Inheritable, parent: Inheritable): GrantProblem[] {
  const parentFields = grantFields(parent.grants);
  return grantFields(child.grants).flatMap(([field, patterns, kind], index) => {
    const [, outer] = parentFields[index] ?? [];
    return uncovered(patterns, outer, kind).map((pattern) => ({
      field,
      pattern,
      message: `${field} "${pattern}" exceeds the parent (it has ${listed(outer)}); a child may only have what its parent has`,
    }));
  });
}

/** Without the denial the child could call a tool that its parent may not call. */
function denyProblems(child: Inheritable, parent: Inheritable): GrantProblem[] {
  return uncovered(parent.denyTools, child.denyTools, 'tool').map((pattern) => ({
    field: 'spec.denyTools',
    pattern,
    message: `denyTools "${pattern}" of the parent is missing; a child is denied what its parent is denied`,
  }));
}

function pinProblems(child: Inheritable, parent: Inheritable): GrantProblem[] {
  return (parent.arguments ?? [])
    .filter((pin) => !(child.arguments ?? []).some((childPin) => pinsAtLeast(childPin, pin)))
    .map((pin) => ({
      field: 'spec.arguments',
      pattern: pin.tool,
      message: `argument "${pin.argument}" of tool "${pin.tool}" is pinned to ${listed(pin.allow)} for the parent; pin it for the child as tightly`,
    }));
}

type Pin = NonNullable<AgentSpec['arguments']>[number];

function pinsAtLeast(childPin: Pin, pin: Pin): boolean {
  return (
    childPin.argument === pin.argument &&
    PATTERN_RULES.covers([childPin.tool], pin.tool, 'tool') &&
    uncovered(childPin.allow, pin.allow, 'path').length === 0
  );
}

/** The patterns of `inner` that `outer` does not cover. */
function uncovered(
  inner: readonly string[] | undefined,
  outer: readonly string[] | undefined,
  kind: PatternKind,
): string[] {
  return (inner ?? []).filter((text) => !PATTERN_RULES.covers(outer ?? [], text, kind));
}

function listed(patterns: readonly string[] | undefined): string {
  return patterns === undefined || patterns.length === 0 ? 'nothing' : patterns.map((text) => `"${text}"`).join(', ');
}
