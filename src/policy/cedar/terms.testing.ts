import type { TrustPolicySpec } from '../../api/v1alpha1/trustpolicy.ts';
import { either, quoted } from './expressions.testing.ts';
import { LIMITS } from './levels.testing.ts';

export function permit(action: string, when: string): string {
  return `permit (principal, action == Action::${quoted(action)}, resource) when { ${when} };`;
}

export function forbid(action: string, when: string): string {
  return `forbid (principal, action == Action::${quoted(action)}, resource) when { ${when} };`;
}

/** Whether one of the levels says so. */
export function anyLimit(condition: (limit: string) => string): string {
  return either(LIMITS.map((name) => condition(`principal.${name}`)));
}

export function isTaintedFor(operation: string, { tainted }: TrustPolicySpec): string {
  const denied: readonly string[] = tainted?.deny ?? ['forge', 'promote', 'schedule'];
  return denied.includes(operation) ? 'context.tainted' : 'false';
}

export function guardsPrivateData({ privateData }: TrustPolicySpec): string {
  return privateData?.sources?.length === 0 ? 'false' : 'context.tainted && context.private';
}

/** The last generation neither starts nor ends agents. */
export function isLastGeneration({ children }: TrustPolicySpec): string {
  return `principal.generation + 1 >= ${children?.generations ?? 5}`;
}
