import { digestOf, isDigest } from '../../lib/canonical.ts';
import type { Json } from '../../lib/json.ts';
import type { PlainObject } from '../kube-types.ts';

/** On a guard: the digest of its spec, as canonical JSON. */
export const GUARD_DIGEST = 'temper.dev/guard-digest';
export const GUARD_LABEL = 'temper.dev/guard=true';

interface Guards {
  readonly policies: readonly PlainObject[];
  readonly bindings: readonly PlainObject[];
}

/** What must be in force: by name, the digest of the policy's spec, or `INSTALLED`. */
export type ExpectedGuards = Readonly<Record<string, string>>;

/** Another release made it, with its own namespaces in it: it must be as that one installed it, whatever its digest. */
const INSTALLED = 'installed';

/** Why the guards cannot be trusted; undefined when each is there, is what it says it is, and denies. Pure. */
export function guardProblem({ policies, bindings }: Guards, expected: ExpectedGuards): string | undefined {
  for (const [name, digest] of Object.entries(expected)) {
    const problem =
      objectProblem(
        'ValidatingAdmissionPolicy',
        find(policies, name),
        name,
        digest === INSTALLED ? undefined : digest,
      ) ??
      objectProblem('ValidatingAdmissionPolicyBinding', find(bindings, name), name, undefined) ??
      bindingProblem(find(bindings, name), name);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function find(objects: readonly PlainObject[], name: string): PlainObject | undefined {
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
  const declared = object.metadata.annotations?.[GUARD_DIGEST];
  if (!isDigest(declared) || declared !== digest)
    return `${kind} "${name}" was changed: its spec has another digest than it was installed with`;
  if (expected !== undefined && digest !== expected) return `${kind} "${name}" is of another release than the operator`;
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
  return `ValidatingAdmissionPolicyBinding "${name}" does not deny everywhere what the policy refuses`;
}

/** Changes whenever any guard does. */
export function guardVersion({ policies, bindings }: Guards): string {
  const versions = [...policies, ...bindings].map(({ metadata }) => `${metadata.uid}:${metadata.resourceVersion}`);
  return versions.sort().join(' ');
}
