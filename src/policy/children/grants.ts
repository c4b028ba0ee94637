import type { PatternKind } from '../../api/findings.ts';
import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import type { BoundedPatternRules } from '../patterns/pattern-rules.ts';
import { quotedList, refusal, type Refusal } from './refusal.ts';

type Grants = NonNullable<AgentSpec['grants']>;
type GrantRule = readonly [field: string, kind: PatternKind, of: (grants: Grants) => readonly string[] | undefined];

/** Every grant that is a list of patterns, with their kind. */
const LISTS: Readonly<Record<Exclude<keyof Grants, 'memory' | 'events' | 'schedules'>, PatternKind>> = {
  tools: 'tool',
  network: 'host',
  messages: 'name',
  spawn: 'name',
  kill: 'name',
  shell: 'name',
  environment: 'name',
};

const RULES: readonly GrantRule[] = [
  ...Object.entries(LISTS).map(([key, kind]): GrantRule => [key, kind, (grants) => grants[key as keyof typeof LISTS]]),
  ['memory.read', 'key', ({ memory }) => memory?.read],
  ['memory.write', 'key', ({ memory }) => memory?.write],
  ['events.publish', 'event', ({ events }) => events?.publish],
  ['events.subscribe', 'event', ({ events }) => events?.subscribe],
];

/** Each pattern of the child has to lie within the parent's patterns of the same grant, compared as languages. */
export function grantRefusals(child: Grants = {}, parent: Grants = {}, patterns: BoundedPatternRules): Refusal[] {
  const outside = RULES.flatMap(([key, kind, of]) => {
    const ceiling = (of(parent) ?? []).filter((pattern) => patterns.patternError(pattern, kind) === undefined);
    return (of(child) ?? []).flatMap((pattern, index): Refusal[] => {
      const field = `spec.grants.${key}[${index}]`;
      const error = patterns.patternError(pattern, kind);
      if (error !== undefined) return [refusal(field, `"${pattern}", which is not a pattern,`, quotedList(ceiling))];
      if (patterns.covers(ceiling, pattern, kind)) return [];
      return [refusal(field, `"${pattern}"`, quotedList(ceiling))];
    });
  });
  return [...outside, ...noSchedules(child)];
}

/** A run starts a chain of messages of its own, which the chain of the parent would not limit. */
function noSchedules({ schedules = 0 }: Grants): Refusal[] {
  return schedules === 0 ? [] : [refusal('spec.grants.schedules', `${schedules}`, '0, as every child agent')];
}
