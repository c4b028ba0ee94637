import { DEFAULT_PRIVATE_SOURCES } from '../../api/v1alpha1/actions.ts';
import type { TrustPolicySpec } from '../../api/v1alpha1/trustpolicy.ts';

/** The rule that asks an approver before a session with private data and untrusted content sends anything to a host. */
export const PRIVATE_NETWORK_RULE = 'private.network';

/** Is content of this origin private data of the session that reads it? */
export function isPrivateSource(origin: string | undefined, { privateData }: TrustPolicySpec): boolean {
  const sources: readonly string[] = privateData?.sources ?? DEFAULT_PRIVATE_SOURCES;
  return origin !== undefined && sources.includes(origin);
}

/** Is a message private data of its session? What a tainted session wrote may contain all that it has read. */
export function isPrivateMessage(
  { source, tainted }: { source?: string | undefined; tainted?: boolean | undefined },
  policy: TrustPolicySpec,
): boolean {
  if (isPrivateSource(source, policy)) return true;
  const isOfAgent = source === 'Agent' || source === 'Reply';
  return isOfAgent && tainted === true && policy.privateData?.sources?.length !== 0;
}
