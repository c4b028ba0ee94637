import { DEFAULT_PRIVATE_SOURCES } from '../../api/v1alpha1/actions.ts';
import type { TrustPolicySpec } from '../../api/v1alpha1/trustpolicy.ts';

/** The rule that asks an approver before a session with private data and untrusted content sends anything to a host. */
export const PRIVATE_NETWORK_RULE = 'private.network';

/** Is content of this origin private data of the session that reads it? */
export function isPrivateSource(origin: string | undefined, { privateData }: TrustPolicySpec): boolean {
  const sources: readonly string[] = privateData?.sources ?? DEFAULT_PRIVATE_SOURCES;
  return origin !== undefined && sources.includes(origin);
}

/**
 * Is what a session reads private data of that session? What a tainted session wrote may contain all that it has read, by whatever way it
 * arrives: a message, an answer, an event, a schedule or a value of the memory.
 */
export function isPrivateContent(
  { source, tainted }: { source?: string | undefined; tainted?: boolean | undefined },
  policy: TrustPolicySpec,
): boolean {
  if (isPrivateSource(source, policy)) return true;
  return tainted === true && policy.privateData?.sources?.length !== 0;
}
