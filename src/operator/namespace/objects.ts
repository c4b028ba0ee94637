import { LABELS, NAMESPACE_OBJECTS, PORTS, PRIORITY_CLASS } from '../../api/cluster.ts';
import { parseMillicores, parseQuantityBytes } from '../../api/quantities.ts';
import type { ResourceType } from '../../kube/client/kube-client.ts';
import { MANAGED_LABEL, type PlainObject, type StoredPolicy, TYPES } from '../kube/types.ts';
import { bytesQuantity, countQuantity, cpuQuantity } from '../kube/quantities.ts';

/** An object that must exist in a namespace before the first agent pod. */
export interface Prerequisite {
  readonly type: ResourceType;
  readonly object: PlainObject;
}

/** Content of the endpoints ConfigMap: how agent pods reach the gateway, and which CA they trust. */
export interface GatewayEndpointData {
  /** `https://address:port` */
  readonly gateway: string;
  /** Server name in the certificate of the gateway. */
  readonly gatewayName: string;
  /** The CA bundle, PEM. Several certificates during a CA rotation. */
  readonly caBundle: string;
}

export interface PrerequisiteOptions {
  readonly namespace: string;
  readonly releaseNamespace: string;
  readonly gatewayLabels: Readonly<Record<string, string>>;
  readonly gatewayEndpoint: GatewayEndpointData;
  readonly policies: readonly Pick<StoredPolicy, 'spec'>[];
  /** Number of warm pods, in addition to the agents of the policies. */
  readonly warmPods: number;
}

/** In creation order: the network policies come before every object that could use the network. */
export function prerequisites(options: PrerequisiteOptions): Prerequisite[] {
  return [
    { type: TYPES.networkPolicies, object: denyAll(options.namespace) },
    { type: TYPES.networkPolicies, object: allowGateway(options) },
    { type: TYPES.resourceQuotas, object: resourceQuota(options) },
    { type: TYPES.serviceAccounts, object: serviceAccount(options.namespace, NAMESPACE_OBJECTS.agentServiceAccount) },
    { type: TYPES.serviceAccounts, object: serviceAccount(options.namespace, NAMESPACE_OBJECTS.usersServiceAccount) },
    { type: TYPES.configMaps, object: endpointsConfigMap(options) },
  ];
}

function header(apiVersion: string, kind: string, namespace: string, name: string) {
  return { apiVersion, kind, metadata: { name, namespace, labels: { ...MANAGED_LABEL } } };
}

function serviceAccount(namespace: string, name: string): PlainObject {
  return { ...header('v1', 'ServiceAccount', namespace, name), automountServiceAccountToken: false };
}

/** Pods read the address of the gateway from it. */
export function endpointsConfigMap({
  namespace,
  gatewayEndpoint,
}: Pick<PrerequisiteOptions, 'namespace' | 'gatewayEndpoint'>): PlainObject {
  return {
    ...header('v1', 'ConfigMap', namespace, NAMESPACE_OBJECTS.endpoints),
    data: {
      gateway: gatewayEndpoint.gateway,
      'gateway-name': gatewayEndpoint.gatewayName,
      'ca.crt': gatewayEndpoint.caBundle,
    },
  };
}

const AGENT_PODS = { matchLabels: { [LABELS.agentPod]: 'true' } };

function denyAll(namespace: string): PlainObject {
  return {
    ...header('networking.k8s.io/v1', 'NetworkPolicy', namespace, NAMESPACE_OBJECTS.denyAll),
    spec: { podSelector: AGENT_PODS, policyTypes: ['Ingress', 'Egress'] },
  };
}

/** One peer with both selectors means AND: the gateway pods in the release namespace. Two peers would mean OR. */
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

/** A second limit besides the operator's own check: the sum of all policies of the namespace. A policy without a quota removes the limit. */
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
      // The API server drops an empty map, which would look like a difference.
      ...(Object.keys(hard).length === 0 ? {} : { hard }),
      scopeSelector: {
        matchExpressions: [{ scopeName: 'PriorityClass', operator: 'In', values: [PRIORITY_CLASS] }],
      },
    },
  };
}

/** Undefined without parts, or when a part has no limit. */
function sumOf(parts: readonly (number | '' | undefined)[]): number | undefined {
  let sum = 0;
  for (const part of parts) {
    if (typeof part !== 'number') return undefined;
    sum += part;
  }
  return parts.length === 0 ? undefined : sum;
}
