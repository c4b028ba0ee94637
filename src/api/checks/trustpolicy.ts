import { dottedPath } from '../findings.ts';
import type { Finding, PatternRules, ValidPart } from '../findings.ts';
import { parseDecimalMicros, parseDuration, parseMillicores, parseQuantityBytes } from '../quantities.ts';
import { builtInRisk, DEFAULT_BASE_ACTION, expandActions, RISKS } from '../v1alpha1/actions.ts';
import type { TrustPolicySpec } from '../v1alpha1/trustpolicy.ts';
import { APPROVAL_SETTINGS_CHECKS } from './approval-settings.ts';
import { customLevelsHaveNamesOfTheirOwn, elevatedNeedsHuman, initialIsBelowCeiling, levelsExist } from './levels.ts';
import { STRATEGY_CHECKS } from './strategy.ts';
import { checkActions, checkMeasures, checkPattern, checkPatterns, itemsOf, present, quoted } from './shared.ts';

type Spec = ValidPart<TrustPolicySpec>;
type TrustPolicyCheck = (spec: Spec, patterns: PatternRules) => Finding[];

/** Cross-field rules of a TrustPolicy. */
export const TRUST_POLICY_CHECKS: readonly TrustPolicyCheck[] = [
  levelsExist,
  elevatedNeedsHuman,
  initialIsBelowCeiling,
  customLevelsHaveNamesOfTheirOwn,
  actionsAreRegistered,
  risksAreNotBelowBase,
  allowedActionsAreNotDenied,
  allowedToolsAreNotDenied,
  patternsAreWellFormed,
  durationsAreInRange,
  forgeLimitsAreInRange,
  quotasAreInRange,
  ...STRATEGY_CHECKS,
  ...APPROVAL_SETTINGS_CHECKS,
];

function actionsAreRegistered(spec: Spec): Finding[] {
  const custom = customActions(spec);
  return [
    ...checkActions(spec.rules?.deny, ['spec', 'rules', 'deny'], custom),
    ...checkActions(spec.rules?.requireApproval, ['spec', 'rules', 'requireApproval'], custom),
    ...checkActions(spec.rules?.allow, ['spec', 'rules', 'allow'], custom),
    ...checkActions(spec.constraints?.requireApproval, ['spec', 'constraints', 'requireApproval'], custom),
    ...[...itemsOf(spec.levels, ['spec', 'levels'])].flatMap(([level, path]) =>
      checkActions(level.constraints?.requireApproval, [...path, 'constraints', 'requireApproval'], custom),
    ),
  ];
}

function customActions({ actions }: Spec): string[] {
  return present(actions).flatMap(({ name }) => name ?? []);
}

/** A custom action never has less risk than the built-in one whose rules apply to it. */
function risksAreNotBelowBase({ actions }: Spec): Finding[] {
  return [...itemsOf(actions, ['spec', 'actions'])].flatMap(
    ([{ base = DEFAULT_BASE_ACTION, risk }, path]): Finding[] => {
      const least = builtInRisk(base);
      if (risk === undefined || least === undefined || RISKS.indexOf(risk) >= RISKS.indexOf(least)) return [];
      const message = `${dottedPath(path)} has risk ${risk}, and its base ${base} has risk ${least}`;
      return [
        {
          path: [...path, 'risk'],
          rule: 'action-risk',
          message,
          fix: `write ${least} or a higher risk, or another base`,
        },
      ];
    },
  );
}

function allowedActionsAreNotDenied(spec: Spec): Finding[] {
  const custom = customActions(spec);
  const denied = new Set(present(spec.rules?.deny).flatMap((entry) => expandActions(entry, custom)));
  return [...itemsOf(spec.rules?.allow, ['spec', 'rules', 'allow'])].flatMap(([entry, path]): Finding[] => {
    const both = expandActions(entry, custom).filter((action) => denied.has(action));
    if (both.length === 0) return [];
    const message = `${dottedPath(path)} ${quoted(entry)} allows what spec.rules.deny denies: ${both.join(', ')}`;
    return [{ path, rule: 'overlap', message, fix: 'remove it from one of the two; deny takes precedence' }];
  });
}

function allowedToolsAreNotDenied(spec: Spec, rules: PatternRules): Finding[] {
  const denied = present(spec.tools?.deny);
  return [...itemsOf(spec.tools?.allow, ['spec', 'tools', 'allow'])].flatMap(([tool, path]): Finding[] => {
    if (rules.patternError(tool, 'tool') !== undefined || !rules.covers(denied, tool, 'tool')) return [];
    const message = `${dottedPath(path)} ${quoted(tool)} is allowed, but spec.tools.deny denies all of it`;
    return [{ path, rule: 'overlap', message, fix: 'remove it from one of the two; deny takes precedence' }];
  });
}

function patternsAreWellFormed(spec: Spec, rules: PatternRules): Finding[] {
  const gitPath = spec.promotion?.toShared?.gitOps?.path;
  return [
    ...[...itemsOf(spec.actions, ['spec', 'actions'])].flatMap(([{ tools }, path]) =>
      checkPatterns(rules, 'tool', tools, [...path, 'tools']),
    ),
    ...checkPatterns(rules, 'tool', spec.tools?.allow, ['spec', 'tools', 'allow']),
    ...checkPatterns(rules, 'tool', spec.tools?.deny, ['spec', 'tools', 'deny']),
    ...checkPatterns(rules, 'model', spec.models?.allow, ['spec', 'models', 'allow']),
    ...checkPatterns(rules, 'host', spec.forge?.domains, ['spec', 'forge', 'domains']),
    ...checkPatterns(rules, 'name', spec.children?.templates, ['spec', 'children', 'templates']),
    ...checkPatterns(rules, 'host', spec.egress?.allow, ['spec', 'egress', 'allow']),
    ...checkPatterns(rules, 'host', spec.tainted?.network, ['spec', 'tainted', 'network']),
    ...checkPatterns(rules, 'tool', spec.tainted?.tools, ['spec', 'tainted', 'tools']),
    ...checkPattern(rules, 'path', gitPath, ['spec', 'promotion', 'toShared', 'gitOps', 'path']),
  ];
}

function durationsAreInRange({ promotion }: Spec): Finding[] {
  const some = { parse: parseDuration, minimum: 1, allowed: 'a duration longer than 0' };
  return checkMeasures([
    { path: ['spec', 'promotion', 'toAgent', 'coolDown'], value: promotion?.toAgent?.coolDown, ...some, minimum: 0 },
  ]);
}

function forgeLimitsAreInRange({ forge }: Spec): Finding[] {
  const limits = ['spec', 'forge', 'limits'];
  return checkMeasures([
    {
      path: [...limits, 'duration'],
      value: forge?.limits?.duration,
      parse: parseDuration,
      minimum: 1,
      maximum: 30_000,
      allowed: 'a duration from 1ms to 30s',
    },
    {
      path: [...limits, 'memory'],
      value: forge?.limits?.memory,
      parse: parseQuantityBytes,
      minimum: 8 * 1024 ** 2,
      maximum: 1024 ** 3,
      allowed: 'bytes from 8Mi to 1Gi',
    },
  ]);
}

function quotasAreInRange({ quotas }: Spec): Finding[] {
  const money = { parse: parseDecimalMicros, minimum: 0, allowed: 'an amount as a string, e.g. "300.00"' };
  return checkMeasures([
    { path: ['spec', 'quotas', 'costPerHour'], value: quotas?.costPerHour, ...money },
    { path: ['spec', 'quotas', 'costPerDay'], value: quotas?.costPerDay, ...money },
    { path: ['spec', 'quotas', 'costPerMonth'], value: quotas?.costPerMonth, ...money },
    {
      path: ['spec', 'quotas', 'cpu'],
      value: quotas?.cpu,
      parse: parseMillicores,
      minimum: 0,
      allowed: 'CPU cores such as 500m or 8',
    },
    {
      path: ['spec', 'quotas', 'memory'],
      value: quotas?.memory,
      parse: parseQuantityBytes,
      minimum: 0,
      allowed: 'bytes such as 16Gi',
    },
  ]);
}
