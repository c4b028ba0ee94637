import { containsFields } from '../kube/subset-match.ts';
import type { PodTemplate } from './pod-template.ts';

interface Named {
  readonly name: string;
}

interface ContainerFields extends Named {
  readonly image?: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly securityContext?: object;
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string; readonly readOnly?: boolean }[];
}

interface SpecFields {
  readonly serviceAccountName?: string;
  readonly automountServiceAccountToken?: boolean;
  readonly hostNetwork?: boolean;
  readonly hostPID?: boolean;
  readonly hostIPC?: boolean;
  readonly containers?: readonly ContainerFields[];
  readonly volumes?: readonly Named[];
}

/**
 * Was the pod created from the template? Where the admission policies reserve the labels of agent pods to the operator, its mutating
 * webhooks may have added containers, variables, volumes and tolerations, so only what the template says about its own containers and
 * volumes is compared, by name. Elsewhere any user may have created the pod, so every list must be equal.
 */
export function matchesTemplate(spec: object | undefined, template: PodTemplate, isReserved: boolean): boolean {
  const actual = (spec ?? {}) as SpecFields;
  if (!isReserved) return containsFields(spec, template.spec) && hasNoAdditions(actual, template.spec as SpecFields);
  const wanted = template.spec as SpecFields;
  return (
    hasSameIdentity(actual, wanted) &&
    (wanted.containers ?? []).every((container) => isSameContainer(byName(actual.containers, container), container)) &&
    (wanted.volumes ?? []).every((volume) => containsFields(byName(actual.volumes, volume), volume))
  );
}

/** Lists are compared by length; these members would not be missed in a list that the template lacks. */
function hasNoAdditions(actual: SpecFields, wanted: SpecFields): boolean {
  const added = (one: object, other: object, members: readonly string[]): boolean =>
    members.some((member) => Reflect.get(one, member) !== undefined && Reflect.get(other, member) === undefined);
  return (
    !added(actual, wanted, ['initContainers', 'ephemeralContainers', 'hostNetwork', 'hostPID', 'hostIPC']) &&
    (actual.containers ?? []).every((container, index) => {
      return !added(container, wanted.containers?.[index] ?? {}, ['command', 'env', 'envFrom', 'lifecycle']);
    })
  );
}

function hasSameIdentity(actual: SpecFields, wanted: SpecFields): boolean {
  const usesHost = actual.hostNetwork === true || actual.hostPID === true || actual.hostIPC === true;
  return (
    !usesHost &&
    actual.serviceAccountName === wanted.serviceAccountName &&
    actual.automountServiceAccountToken === wanted.automountServiceAccountToken
  );
}

function isSameContainer(actual: ContainerFields | undefined, wanted: ContainerFields): boolean {
  if (actual === undefined || actual.image !== wanted.image) return false;
  const { command = [], args = [], securityContext = {}, volumeMounts = [] } = wanted;
  return (
    containsFields(actual.command ?? [], command) &&
    containsFields(actual.args ?? [], args) &&
    containsFields(actual.securityContext, securityContext) &&
    volumeMounts.every((mount) =>
      actual.volumeMounts?.some((found) => found.mountPath === mount.mountPath && containsFields(found, mount)),
    )
  );
}

function byName<T extends Named>(items: readonly T[] | undefined, { name }: Named): T | undefined {
  return items?.find((item) => item.name === name);
}
