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

/** Address and server name of the egress proxy. */
interface EgressEndpoint {
  readonly address: string;
  readonly name: string;
  /** Certificate authorities that agents trust for their targets beside the public ones, PEM. */
  readonly targetAuthorities?: string;
}

/** Content of the endpoints ConfigMap: how agent pods reach the gateway and the egress proxy, and which CA they trust. */
export interface EndpointData {
  /** `https://address:port` */
  readonly gateway: string;
  /** Server name in the certificate of the gateway. */
  readonly gatewayName: string;
  /** Absent without an egress proxy. */
  readonly egress?: EgressEndpoint;
  /** The CA bundle, PEM. Several certificates during a CA rotation. */
  readonly caBundle: string;
}

export interface PrerequisiteOptions {
  readonly namespace: string;
  readonly releaseNamespace: string;
  readonly gatewayLabels: Readonly<Record<string, string>>;
  /** Of the pods of the egress proxy; absent without one. */
  readonly egressLabels?: Readonly<Record<string, string>> | undefined;
  readonly endpoints: EndpointData;
  readonly policies: readonly Pick<StoredPolicy, 'spec'>[];
  /** Number of warm pods, in addition to the agents of the policies. */
  readonly warmPods: number;
}

/** In creation order: the network policies come before every object that could use the network. */
export function prerequisites(options: PrerequisiteOptions): Prerequisite[] {
  return [
    { type: TYPES.networkPolicies, object: denyAll(options.namespace) },
    ...allowed(options).map((object) => ({ type: TYPES.networkPolicies, object })),
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

/** Pods read the addresses of the gateway and the egress proxy from it. */
export function endpointsConfigMap({
  namespace,
  endpoints: { gateway, gatewayName, egress, caBundle },
}: Pick<PrerequisiteOptions, 'namespace' | 'endpoints'>): PlainObject {
  return {
    ...header('v1', 'ConfigMap', namespace, NAMESPACE_OBJECTS.endpoints),
    data: {
      gateway,
      'gateway-name': gatewayName,
      ...(egress === undefined ? {} : egressData(egress)),
      'ca.crt': caBundle,
    },
  };
}

function egressData({ address, name, targetAuthorities }: EgressEndpoint): Record<string, string> {
  const own = { egress: address, 'egress-name': name };
  return targetAuthorities === undefined ? own : { ...own, 'egress-ca.crt': targetAuthorities };
}

const AGENT_PODS = { matchLabels: { [LABELS.agentPod]: 'true' } };

function denyAll(namespace: string): PlainObject {
  return {
    ...header('networking.k8s.io/v1', 'NetworkPolicy', namespace, NAMESPACE_OBJECTS.denyAll),
    spec: { podSelector: AGENT_PODS, policyTypes: ['Ingress', 'Egress'] },
  };
}

/** Every pod reaches the gateway, those of agents with grants for hosts also the egress proxy of the release, and none anything else. */
function allowed(options: PrerequisiteOptions): PlainObject[] {
  const { gatewayLabels, egressLabels } = options;
  const gateway = allow(options, NAMESPACE_OBJECTS.allowGateway, {
    from: AGENT_PODS,
    to: gatewayLabels,
    port: PORTS.gateway,
  });
  if (egressLabels === undefined) return [gateway];
  const from = { matchLabels: { ...AGENT_PODS.matchLabels, [LABELS.egress]: 'true' } };
  return [gateway, allow(options, NAMESPACE_OBJECTS.allowEgress, { from, to: egressLabels, port: PORTS.egress })];
}

interface Allowed {
  readonly from: { readonly matchLabels: Readonly<Record<string, string>> };
  /** Labels of pods of the release. */
  readonly to: Readonly<Record<string, string>>;
  readonly port: number;
}

function allow(
  { namespace, releaseNamespace }: PrerequisiteOptions,
  name: string,
  { from, to, port }: Allowed,
): PlainObject {
  // One peer with both selectors means AND: these pods in the release namespace. Two peers would mean OR.
  const peer = {
    namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': releaseNamespace } },
    podSelector: { matchLabels: to },
  };
  return {
    ...header('networking.k8s.io/v1', 'NetworkPolicy', namespace, name),
    spec: {
      podSelector: from,
      policyTypes: ['Egress'],
      egress: [{ to: [peer], ports: [{ protocol: 'TCP', port }] }],
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
