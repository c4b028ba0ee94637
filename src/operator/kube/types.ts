import { resourceType } from '../../kube/client/resource-path.ts';
import { API_VERSION } from '../../api/names.ts';
import type { Agent } from '../../api/v1alpha1/agent.ts';
import type { TrustPolicy } from '../../api/v1alpha1/trustpolicy.ts';
import type { ResourceType } from '../../kube/client/kube-client.ts';
import type { KubeObject } from '../../kube/informer/store.ts';

/** An object of a Temper kind as the API server returns it, with the metadata that is optional in a manifest. */
export type Stored<T extends { metadata: object }> = Omit<T, 'metadata'> & {
  readonly metadata: KubeObject['metadata'] & {
    readonly namespace: string;
    readonly uid: string;
    readonly resourceVersion: string;
    readonly generation: number;
    readonly creationTimestamp: string;
    readonly deletionTimestamp?: string;
  };
};
export type StoredAgent = Stored<Agent>;
export type StoredPolicy = Stored<TrustPolicy>;

interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
}

export interface ContainerStatus {
  readonly name: string;
  readonly ready?: boolean;
  readonly restartCount?: number;
  readonly state?: ContainerState;
  readonly lastState?: ContainerState;
}

interface ContainerState {
  readonly running?: object;
  readonly waiting?: { readonly reason?: string; readonly message?: string };
  readonly terminated?: { readonly exitCode: number; readonly reason?: string; readonly message?: string };
}

export interface Pod extends KubeObject {
  readonly metadata: KubeObject['metadata'] & {
    readonly creationTimestamp?: string;
    readonly deletionTimestamp?: string;
    readonly deletionGracePeriodSeconds?: number;
    readonly ownerReferences?: readonly OwnerReference[];
  };
  readonly spec?: { readonly nodeName?: string };
  readonly status?: {
    readonly phase?: string;
    readonly reason?: string;
    readonly message?: string;
    readonly conditions?: readonly { type: string; status: string; reason?: string; message?: string }[];
    readonly containerStatuses?: readonly ContainerStatus[];
  };
}

/** An object that the operator only compares with its desired state. */
export type PlainObject = KubeObject & Readonly<Record<string, unknown>>;

const core = (plural: string, kind: string, namespaced = true): ResourceType =>
  resourceType('v1', plural, kind, namespaced);
const own = (plural: string, kind: string): ResourceType => resourceType(API_VERSION, plural, kind);
const admission = (plural: string, kind: string): ResourceType =>
  resourceType('admissionregistration.k8s.io/v1', plural, kind, false);

export const TYPES = {
  agents: own('agents', 'Agent'),
  trustPolicies: own('trustpolicies', 'TrustPolicy'),
  capabilities: own('capabilities', 'Capability'),
  emergentTools: own('emergenttools', 'EmergentTool'),
  approvalRequests: own('approvalrequests', 'ApprovalRequest'),
  approvals: own('approvals', 'Approval'),
  pods: core('pods', 'Pod'),
  configMaps: core('configmaps', 'ConfigMap'),
  events: core('events', 'Event'),
  secrets: core('secrets', 'Secret'),
  services: core('services', 'Service'),
  serviceAccounts: core('serviceaccounts', 'ServiceAccount'),
  resourceQuotas: core('resourcequotas', 'ResourceQuota'),
  namespaces: core('namespaces', 'Namespace', false),
  networkPolicies: resourceType('networking.k8s.io/v1', 'networkpolicies', 'NetworkPolicy'),
  admissionPolicies: admission('validatingadmissionpolicies', 'ValidatingAdmissionPolicy'),
  admissionBindings: admission('validatingadmissionpolicybindings', 'ValidatingAdmissionPolicyBinding'),
} as const satisfies Record<string, ResourceType>;

/** Field manager of all writes. */
export const FIELD_MANAGER = 'temper-operator';

/** Label of every object that the operator applies. */
export const MANAGED_LABEL = { 'app.kubernetes.io/managed-by': 'temper-operator' } as const;
