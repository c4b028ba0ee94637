import { LABELS, NAMESPACE_OBJECTS, PORTS, PRIORITY_CLASS } from '../../api/cluster.ts';
import { parseMillicores, parseQuantityBytes } from '../../api/quantities.ts';
import type { ResourceType } from '../../kube/client.ts';
import { MANAGED_LABEL, type PlainObject, type StoredPolicy, TYPES } from '../kube-types.ts';
import { bytesQuantity, countQuantity, cpuQuantity } from '../quantities.ts';

/** An object that has to be in a namespace before the first pod. */
export interface Prerequisite {
  readonly type: ResourceType;
  readonly object: PlainObject;
}

/** What agents are told about the gateway, and who they trust. */
export interface Doors {
  /** `https://address:port` */
  readonly gateway: string;
  /** The name its certificate has. */
  readonly gatewayName: string;
  /** PEM; during a rotation of several authorities. */
  readonly authorities: string;
}

export interface PrerequisiteOptions {
  readonly namespace: string;
  readonly releaseNamespace: string;
  readonly gatewayLabels: Readonly<Record<string, string>>;
  readonly doors: Doors;
  readonly policies: readonly Pick<StoredPolicy, 'spec'>[];
  /** Warm pods, which count beside those of the policies' agents. */
  readonly warmPods: number;
}

/** In the order in which they are made: what closes the network comes before anything that could use it. */
export function prerequisites(options: PrerequisiteOptions): Prerequisite[] {
  return [
    { type: TYPES.networkPolicies, object: denyAll(options.namespace) },
    { type: TYPES.networkPolicies, object: allowGateway(options) },
    { type: TYPES.resourceQuotas, object: resourceQuota(options) },
    { type: TYPES.serviceAccounts, object: serviceAccount(options.namespace, NAMESPACE_OBJECTS.agentServiceAccount) },
    { type: TYPES.serviceAccounts, object: serviceAccount(options.namespace, NAMESPACE_OBJECTS.peopleServiceAccount) },
    { type: TYPES.configMaps, object: doorsConfigMap(options) },
  ];
}

function header(apiVersion: string, kind: string, namespace: string, name: string) {
  return { apiVersion, kind, metadata: { name, namespace, labels: { ...MANAGED_LABEL } } };
}

function serviceAccount(namespace: string, name: string): PlainObject {
  return { ...header('v1', 'ServiceAccount', namespace, name), automountServiceAccountToken: false };
}

function doorsConfigMap({ namespace, doors }: PrerequisiteOptions): PlainObject {
  return {
    ...header('v1', 'ConfigMap', namespace, NAMESPACE_OBJECTS.doors),
    data: { gateway: doors.gateway, 'gateway-name': doors.gatewayName, 'ca.crt': doors.authorities },
  };
}

const AGENT_PODS = { matchLabels: { [LABELS.agentPod]: 'true' } };

function denyAll(namespace: string): PlainObject {
  return {
    ...header('networking.k8s.io/v1', 'NetworkPolicy', namespace, NAMESPACE_OBJECTS.denyAll),
    spec: { podSelector: AGENT_PODS, policyTypes: ['Ingress', 'Egress'] },
  };
}

/** One entry with both selectors: pods of the gateway in the namespace of the release, not either. */
function allowGateway({ namespace, releaseNamespace, gatewayLabels }: PrerequisiteOptions): PlainObject {
  const to = {
    namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': releaseNamespace } },
    podSelector: { matchLabels: gatewayLabels },
  };
  return {
    ...header('networking.k8s.io/v1', 'NetworkPolicy', namespace, NAMESPACE_OBJECTS.allowGateway),
    spec: {
      podSelector: AGENT_PODS,
      policyTypes: ['Egress'],
      egress: [{ to: [to], ports: [{ protocol: 'TCP', port: PORTS.gateway }] }],
    },
  };
}

/** Beneath the operator's own counting: what all policies of the namespace allow together. A policy without a limit lifts it. */
function resourceQuota({ namespace, policies, warmPods }: PrerequisiteOptions): PlainObject {
  const quotas = policies.map(({ spec }) => spec.quotas ?? {});
  const agents = sumOf(quotas.map((quota) => quota.agents));
  const cpu = sumOf(quotas.map((quota) => quota.cpu && parseMillicores(quota.cpu)));
  const memory = sumOf(quotas.map((quota) => quota.memory && parseQuantityBytes(quota.memory)));
  const hard = {
    ...(agents === undefined ? {} : { pods: countQuantity(agents + warmPods) }),
    ...(cpu === undefined ? {} : { 'requests.cpu': cpuQuantity(cpu) }),
    ...(memory === undefined ? {} : { 'limits.memory': bytesQuantity(memory) }),
  };
  return {
    ...header('v1', 'ResourceQuota', namespace, NAMESPACE_OBJECTS.resourceQuota),
    spec: {
      // An empty map would not come back.
      ...(Object.keys(hard).length === 0 ? {} : { hard }),
      scopeSelector: {
        matchExpressions: [{ scopeName: 'PriorityClass', operator: 'In', values: [PRIORITY_CLASS] }],
      },
    },
  };
}

/** Undefined when there is nothing to add up or one summand has no bound. */
function sumOf(parts: readonly (number | '' | undefined)[]): number | undefined {
  let sum = 0;
  for (const part of parts) {
    if (typeof part !== 'number') return undefined;
    sum += part;
  }
  return parts.length === 0 ? undefined : sum;
}
