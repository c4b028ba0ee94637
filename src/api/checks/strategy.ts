import type { FieldPath, Finding, ValidPart } from '../findings.ts';
import { parseDuration } from '../quantities.ts';
import type { TrustPolicySpec } from '../v1alpha1/trustpolicy.ts';
import { STRATEGY_DEFAULTS } from '../v1alpha1/trust/strategy.ts';
import { checkMeasures, itemsOf } from './shared.ts';

type Spec = ValidPart<TrustPolicySpec>;

/** Cross-field rules of `strategy` and `decay`. */
export const STRATEGY_CHECKS: readonly ((spec: Spec) => Finding[])[] = [
  strategyHasItsRules,
  categoriesAreDistinct,
  weightsMakeHundred,
  thresholdsRise,
  checksHaveAnInterval,
  strategyDurationsAreInRange,
];

const OWNERS = { weighted: 'Weighted', milestone: 'Milestone', categories: 'PerCategory' } as const;

function strategyHasItsRules({ strategy }: Spec): Finding[] {
  if (strategy?.type === undefined) return [];
  const { type } = strategy;
  return Object.entries(OWNERS).flatMap(([field, owner]): Finding[] => {
    const isSet = strategy[field as keyof typeof OWNERS] !== undefined;
    if (isSet && type !== owner) {
      const message = `spec.strategy.${field} has no effect with type ${type}`;
      return [strategyFinding(field, message, `remove it, or set type to ${owner}`)];
    }
    if (isSet || type !== owner || owner === 'Weighted') return [];
    return [
      strategyFinding('type', `strategy type ${owner} requires spec.strategy.${field}`, `add spec.strategy.${field}`),
    ];
  });
}

function categoriesAreDistinct({ strategy }: Spec): Finding[] {
  const seen = new Set<string>();
  return [...itemsOf(strategy?.categories, ['spec', 'strategy', 'categories'])].flatMap(([{ category }, path]) => {
    if (category === undefined || !seen.has(category)) {
      if (category !== undefined) seen.add(category);
      return [];
    }
    const message = `tool category "${category}" is listed twice`;
    return [{ path: [...path, 'category'], rule: 'strategy', message, fix: 'keep one entry' }];
  });
}

function weightsMakeHundred({ strategy }: Spec): Finding[] {
  if (strategy?.weighted?.weights === undefined) return [];
  const weights = { ...STRATEGY_DEFAULTS.weights, ...strategy.weighted.weights };
  const sum = Object.values(weights).reduce<number>((total, weight) => total + (weight ?? 0), 0);
  if (sum === 100) return [];
  const message = `the weights of spec.strategy.weighted add up to ${sum}`;
  return [strategyFinding('weighted.weights', message, 'make the sum of all four 100; absent ones have their default')];
}

function thresholdsRise({ strategy }: Spec): Finding[] {
  const { restricted, standard, elevated } = { ...STRATEGY_DEFAULTS.thresholds, ...strategy?.weighted?.thresholds };
  const [low, middle, high] = [restricted ?? 0, standard ?? 0, elevated ?? 0];
  if (low <= middle && middle <= high) return [];
  const message = `a higher level requires a lower score: ${low}, ${middle}, ${high}`;
  return [strategyFinding('weighted.thresholds', message, 'order them: restricted, then standard, then elevated')];
}

function checksHaveAnInterval({ decay }: Spec): Finding[] {
  if (decay?.minQuality === undefined || decay.reverifyEvery !== undefined) return [];
  const message = 'spec.decay.minQuality has no effect without spec.decay.reverifyEvery';
  return [{ path: ['spec', 'decay', 'minQuality'], rule: 'decay', message, fix: 'add reverifyEvery, such as 2160h' }];
}

function strategyDurationsAreInRange({ decay, strategy }: Spec): Finding[] {
  const rule = { parse: parseDuration, allowed: 'a duration longer than 0' };
  const measure = (path: FieldPath, value: string | undefined, minimum: number) => ({ ...rule, path, value, minimum });
  const milestone = ['spec', 'strategy', 'milestone'];
  const levels = [...itemsOf(strategy?.milestone?.levels, [...milestone, 'levels'])];
  return checkMeasures([
    measure(['spec', 'decay', 'idle'], decay?.idle, 1),
    measure(['spec', 'decay', 'reverifyEvery'], decay?.reverifyEvery, 1),
    measure(['spec', 'decay', 'coolDown'], decay?.coolDown, 0),
    measure([...milestone, 'activeFor'], strategy?.milestone?.activeFor, 0),
    measure([...milestone, 'cleanFor'], strategy?.milestone?.cleanFor, 0),
    ...levels.flatMap(([{ activeFor, cleanFor }, path]) => [
      measure([...path, 'activeFor'], activeFor, 0),
      measure([...path, 'cleanFor'], cleanFor, 0),
    ]),
  ]);
}

function strategyFinding(field: string, message: string, fix: string): Finding {
  return { path: ['spec', 'strategy', ...field.split('.')], rule: 'strategy', message, fix };
}
