import type { Rule, RequestOf } from './rules.ts';

export function detectorRules(): Rule<RequestOf<'Tool'>>[] {
  return [];
}
