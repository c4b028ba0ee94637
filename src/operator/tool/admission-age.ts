import { type ExpectedPolicies, installedPoliciesError } from '../admission-policies/installed-policies.ts';
import type { PlainObject } from '../kube/types.ts';

/** From when on Approvals count, or why none does. */
export type AdmissionAge = { readonly since: Date } | { readonly problem: string };

/** The policies on which an Approval rests: who may decide, that contributors may not, and that only the operator writes statuses. */
const APPROVAL_POLICIES: readonly string[] = ['temper-approvals', 'temper-contributors', 'temper-reserved'];
/** A new policy lets writes through for about a second on each API server. */
const ENFORCEMENT_MS = 10_000;

/**
 * Approvals that are older than the admission policies may come from any user. A policy or binding that was deleted and created again voids
 * all earlier ones, because nothing shows what was created in between. Pure.
 */
export function admissionAge(
  installed: { readonly policies: readonly PlainObject[]; readonly bindings: readonly PlainObject[] },
  expected: ExpectedPolicies | undefined,
): AdmissionAge {
  const needed = Object.fromEntries(
    APPROVAL_POLICIES.flatMap((name) => {
      const digest = expected?.[name];
      return digest === undefined ? [] : [[name, digest]];
    }),
  );
  const missing = APPROVAL_POLICIES.find((name) => needed[name] === undefined);
  if (missing !== undefined) return { problem: `the operator is not configured with ${missing}` };
  const problem = installedPoliciesError(installed, needed);
  if (problem !== undefined) return { problem };
  const times = [...installed.policies, ...installed.bindings]
    .filter(({ metadata }) => APPROVAL_POLICIES.includes(metadata.name))
    .map(({ metadata }) => Date.parse((metadata as { creationTimestamp?: string }).creationTimestamp ?? ''));
  const latest = Math.max(...times);
  if (Number.isNaN(latest)) return { problem: 'the admission policies have no creation time' };
  return { since: new Date(latest + ENFORCEMENT_MS) };
}
