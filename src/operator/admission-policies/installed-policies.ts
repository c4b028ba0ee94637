import { digestOf, isDigest } from '../../lib/canonical.ts';
import type { Json } from '../../lib/json.ts';
import type { PlainObject } from '../kube/types.ts';

/** Annotation of an admission policy or binding: the digest of its spec as canonical JSON. */
export const POLICY_DIGEST_ANNOTATION = 'temper.dev/admission-policy-digest';
export const POLICY_LABEL_SELECTOR = 'temper.dev/admission-policy=true';

interface InstalledPolicies {
  readonly policies: readonly PlainObject[];
  readonly bindings: readonly PlainObject[];
}

/** The required admission policies: by name, the digest of the spec, or `INSTALLED`. */
export type ExpectedPolicies = Readonly<Record<string, string>>;

/** Another release installed the policy, with its own namespaces: the spec must match its own digest annotation only. */
const INSTALLED = 'installed';

/** Why the policies are not effective; undefined when each exists, is unchanged, and has a binding that denies. Pure. */
export function installedPoliciesError(
  { policies, bindings }: InstalledPolicies,
  expected: ExpectedPolicies,
): string | undefined {
  for (const [name, digest] of Object.entries(expected)) {
    const problem =
      objectProblem(
        'ValidatingAdmissionPolicy',
        findByName(policies, name),
        name,
        digest === INSTALLED ? undefined : digest,
      ) ??
      objectProblem('ValidatingAdmissionPolicyBinding', findByName(bindings, name), name, undefined) ??
      bindingProblem(findByName(bindings, name), name);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function findByName(objects: readonly PlainObject[], name: string): PlainObject | undefined {
  return objects.find(({ metadata }) => metadata.name === name);
}

function objectProblem(
  kind: string,
  object: PlainObject | undefined,
  name: string,
  expected: string | undefined,
): string | undefined {
  if (object === undefined) return `${kind} "${name}" does not exist`;
  const digest = digestOf(JSON.parse(JSON.stringify(object['spec'] ?? null)) as Json);
  const declared = object.metadata.annotations?.[POLICY_DIGEST_ANNOTATION];
  if (!isDigest(declared) || declared !== digest)
    return `${kind} "${name}" was changed: its spec does not match its digest annotation`;
  if (expected !== undefined && digest !== expected)
    return `${kind} "${name}" belongs to another version of the chart than the operator`;
  return undefined;
}

function bindingProblem(binding: PlainObject | undefined, name: string): string | undefined {
  const spec = (binding?.['spec'] ?? {}) as {
    policyName?: unknown;
    validationActions?: unknown;
    matchResources?: unknown;
  };
  const denies = Array.isArray(spec.validationActions) && spec.validationActions.includes('Deny');
  if (spec.policyName === name && denies && spec.matchResources === undefined) return undefined;
  return `ValidatingAdmissionPolicyBinding "${name}" does not deny in all namespaces what the policy rejects`;
}

/** Changes when any of the policies or bindings changes. */
export function installedPoliciesVersion({ policies, bindings }: InstalledPolicies): string {
  const versions = [...policies, ...bindings].map(({ metadata }) => `${metadata.uid}:${metadata.resourceVersion}`);
  return versions.sort().join(' ');
}
