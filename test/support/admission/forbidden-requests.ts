/** The spec of a token that an agent pod uses at the gateway. */
export const GATEWAY_TOKEN = { audiences: ['temper-gateway'], expirationSeconds: 600 };

export interface ForbiddenRequest {
  readonly action: string;
  readonly method: string;
  /** The part below the namespace: group and version, then the rest. */
  readonly path: readonly [api: string, rest: string];
  readonly body?: object;
  readonly contentType?: string;
}

const container = { name: 'shell', image: 'example.com/shell' };
const object = (kind: string, apiVersion: string, name: string, rest: object = {}) => ({
  apiVersion,
  kind,
  metadata: { name },
  ...rest,
});
const template = { metadata: { labels: { app: 'x' } }, spec: { containers: [container], restartPolicy: 'Never' } };
const always = { ...template, spec: { containers: [container] } };
const selector = { matchLabels: { app: 'x' } };
const allowAll = { podSelector: {}, policyTypes: ['Egress'], egress: [{}] };

/** Requests that RBAC allows the built-in role `edit` and that namespace protection denies. `pod` is the name of an agent's pod. */
export function forbiddenRequests(pod: string): readonly ForbiddenRequest[] {
  return [
    {
      action: "mint a token bound to the agent's pod",
      method: 'POST',
      path: ['api/v1', 'serviceaccounts/temper-agent/token'],
      body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: GATEWAY_TOKEN },
    },
    { action: 'exec into the pod', method: 'POST', path: ['api/v1', `pods/${pod}/exec?command=sh&stdin=true`] },
    { action: 'attach to the pod', method: 'POST', path: ['api/v1', `pods/${pod}/attach?stdin=true`] },
    { action: 'forward a port of the pod', method: 'POST', path: ['api/v1', `pods/${pod}/portforward?ports=80`] },
    { action: 'proxy to the pod', method: 'GET', path: ['api/v1', `pods/${pod}/proxy/`] },
    { action: 'proxy to a service', method: 'GET', path: ['api/v1', 'services/web/proxy/'] },
    {
      action: 'create a pod',
      method: 'POST',
      path: ['api/v1', 'pods'],
      body: object('Pod', 'v1', 'conflicting', { spec: { containers: [container] } }),
    },
    { action: 'delete the pod', method: 'DELETE', path: ['api/v1', `pods/${pod}`] },
    {
      action: 'change the labels of the pod',
      method: 'PATCH',
      path: ['api/v1', `pods/${pod}`],
      body: { metadata: { labels: { app: 'x' } } },
      contentType: 'application/merge-patch+json',
    },
    { action: 'delete all pods', method: 'DELETE', path: ['api/v1', 'pods'] },
    {
      action: 'create a secret',
      method: 'POST',
      path: ['api/v1', 'secrets'],
      body: object('Secret', 'v1', 'token', {
        type: 'kubernetes.io/service-account-token',
        metadata: { name: 'token', annotations: { 'kubernetes.io/service-account.name': 'temper-agent' } },
      }),
    },
    {
      action: 'create a service',
      method: 'POST',
      path: ['api/v1', 'services'],
      body: object('Service', 'v1', 'takeover', { spec: { ports: [{ port: 8443 }], externalIPs: ['10.96.0.77'] } }),
    },
    {
      action: 'create a service account',
      method: 'POST',
      path: ['api/v1', 'serviceaccounts'],
      body: object('ServiceAccount', 'v1', 'other'),
    },
    {
      action: 'create a network policy that allows all egress',
      method: 'POST',
      path: ['apis/networking.k8s.io/v1', 'networkpolicies'],
      body: object('NetworkPolicy', 'networking.k8s.io/v1', 'allow-all', { spec: allowAll }),
    },
    {
      action: 'delete the deny-all network policy',
      method: 'DELETE',
      path: ['apis/networking.k8s.io/v1', 'networkpolicies/temper-deny-all'],
    },
    {
      action: 'create a deployment',
      method: 'POST',
      path: ['apis/apps/v1', 'deployments'],
      body: object('Deployment', 'apps/v1', 'web', { spec: { selector, template: always } }),
    },
    {
      action: 'create a daemon set',
      method: 'POST',
      path: ['apis/apps/v1', 'daemonsets'],
      body: object('DaemonSet', 'apps/v1', 'web', { spec: { selector, template: always } }),
    },
    {
      action: 'create a job',
      method: 'POST',
      path: ['apis/batch/v1', 'jobs'],
      body: object('Job', 'batch/v1', 'work', { spec: { template } }),
    },
    {
      action: 'block drains by a disruption budget',
      method: 'POST',
      path: ['apis/policy/v1', 'poddisruptionbudgets'],
      body: object('PodDisruptionBudget', 'policy/v1', 'all', { spec: { maxUnavailable: 0, selector: {} } }),
    },
    {
      action: 'create a replication controller',
      method: 'POST',
      path: ['api/v1', 'replicationcontrollers'],
      body: object('ReplicationController', 'v1', 'web', {
        spec: { replicas: 1, selector: { app: 'x' }, template: always },
      }),
    },
  ];
}
