import { DEFAULT_UNTRUSTED_SOURCES } from '../api/v1alpha1/actions.ts';
import type { TrustPolicySpec } from '../api/v1alpha1/trustpolicy.ts';

/** Does a message of this source taint its session? A message without a source is of a user. */
export function isUntrustedSource(source: string | undefined, { tainted }: TrustPolicySpec): boolean {
  const untrusted: readonly string[] = tainted?.sources ?? DEFAULT_UNTRUSTED_SOURCES;
  return source !== undefined && untrusted.includes(source);
}
