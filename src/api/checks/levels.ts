import { suggestName } from '../../lib/suggest.ts';
import { dottedPath } from '../findings.ts';
import type { Finding, FieldPath, ValidPart } from '../findings.ts';
import { BUILTIN_LEVELS, DEFAULT_LEVELS } from '../v1alpha1/actions.ts';
import type { TrustPolicySpec } from '../v1alpha1/trustpolicy.ts';
import { itemsOf, quoted } from './shared.ts';

type Spec = ValidPart<TrustPolicySpec>;

const BUILTIN: readonly string[] = BUILTIN_LEVELS;

/** 0 for sandboxed to 3 for elevated; a custom level ranks with its base. Undefined for an undefined level. */
function rankOf(level: string, spec: Spec): number | undefined {
  const base = BUILTIN.includes(level) ? level : spec.levels?.find((custom) => custom?.name === level)?.base;
  return base === undefined ? undefined : BUILTIN.indexOf(base);
}

/** The built-in level that ranks with the ceiling of the policy. */
export function ceilingBase(spec: Spec): string | undefined {
  const rank = rankOf(spec.level?.ceiling ?? DEFAULT_LEVELS.ceiling, spec);
  return rank === undefined ? undefined : BUILTIN[rank];
}

export function levelsExist(spec: Spec): Finding[] {
  const custom = (spec.levels ?? []).map((level) => level?.name).filter((name) => name !== undefined);
  const known = [...BUILTIN_LEVELS, ...custom];
  const named: [string | undefined, FieldPath][] = [
    [spec.level?.initial, ['spec', 'level', 'initial']],
    [spec.level?.ceiling, ['spec', 'level', 'ceiling']],
    ...categoryLevels(spec),
  ];
  return named.flatMap(([level, path]): Finding[] => {
    if (level === undefined || known.includes(level)) return [];
    const near = suggestName(level, known);
    const message = `access level ${quoted(level)} does not exist`;
    const fix = `${near === undefined ? '' : `did you mean ${near}? `}use ${known.join(', ')}, or define it in spec.levels`;
    return [{ path, rule: 'level-exists', message, fix }];
  });
}

/** Only an approver can raise an agent to `elevated`: it is never an initial level, and a strategy that can ask for it says so. */
export function elevatedNeedsHuman(spec: Spec): Finding[] {
  const top = BUILTIN.length - 1;
  const { initial, ceiling } = spec.level ?? {};
  const starts: [string | undefined, FieldPath][] = [[initial, ['spec', 'level', 'initial']], ...categoryLevels(spec)];
  for (const [level, path] of starts) {
    if (level === undefined || rankOf(level, spec) !== top) continue;
    return [
      {
        path,
        rule: 'elevated-needs-human',
        message: `${dottedPath(path)} ${quoted(level)} would grant elevated without an approver`,
        fix: 'start at sandboxed, restricted or standard; an approver can raise the agent with an Approval',
      },
    ];
  }
  const automatic = spec.strategy?.type !== undefined && spec.strategy.type !== 'Disabled';
  const asks = spec.strategy?.requireHuman?.includes('elevated') === true;
  if (ceiling === undefined || rankOf(ceiling, spec) !== top || !automatic || asks) return [];
  return [
    {
      path: ['spec', 'level', 'ceiling'],
      rule: 'elevated-needs-human',
      message: `spec.level.ceiling ${quoted(ceiling)} can be reached by the automatic strategy ${spec.strategy?.type}`,
      fix: 'add elevated to spec.strategy.requireHuman, or set the ceiling to standard',
    },
  ];
}

export function initialIsBelowCeiling(spec: Spec): Finding[] {
  const ceiling = spec.level?.ceiling ?? DEFAULT_LEVELS.ceiling;
  const high = rankOf(ceiling, spec);
  const starts: [string | undefined, FieldPath][] = [
    [spec.level?.initial, ['spec', 'level', 'initial']],
    ...categoryLevels(spec),
  ];
  return starts.flatMap(([initial, path]): Finding[] => {
    const low = initial === undefined ? undefined : rankOf(initial, spec);
    if (initial === undefined || low === undefined || high === undefined || low <= high) return [];
    const message = `${dottedPath(path)} ${quoted(initial)} is above the ceiling ${quoted(ceiling)}`;
    return [{ path, rule: 'level-order', message, fix: 'lower initial or raise ceiling' }];
  });
}

function categoryLevels(spec: Spec): [string | undefined, FieldPath][] {
  return [...itemsOf(spec.strategy?.categories, ['spec', 'strategy', 'categories'])].map(([{ initial }, path]) => [
    initial,
    [...path, 'initial'],
  ]);
}

export function customLevelsHaveNamesOfTheirOwn(spec: Spec): Finding[] {
  const seen = new Set<string>();
  return [...itemsOf(spec.levels, ['spec', 'levels'])].flatMap(([{ name }, path]): Finding[] => {
    if (name === undefined) return [];
    if (BUILTIN.includes(name)) return [nameTaken([...path, 'name'], name, 'is built in')];
    if (seen.has(name)) return [nameTaken([...path, 'name'], name, 'is defined twice')];
    seen.add(name);
    return [];
  });
}

function nameTaken(path: FieldPath, name: string, why: string): Finding {
  const message = `access level ${quoted(name)} ${why}`;
  return { path, rule: 'level-name', message, fix: 'choose another name' };
}
