const GATEWAY_TOKEN = { audiences: ['temper-gateway'], expirationSeconds: 600 };

export interface Attempt {
  readonly what: string;
  readonly method: string;
  /** Below the namespace: group and version, then the rest. */
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

/** What the built-in role `edit` may do to agents, and to this pod of one, where no fence is. */
export function fenceAttempts(pod: string): readonly Attempt[] {
  return [
    {
      what: "mint a token bound to the agent's pod",
      method: 'POST',
      path: ['api/v1', 'serviceaccounts/temper-agent/token'],
      body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: GATEWAY_TOKEN },
    },
    { what: 'exec into it', method: 'POST', path: ['api/v1', `pods/${pod}/exec?command=sh&stdin=true`] },
    { what: 'attach to it', method: 'POST', path: ['api/v1', `pods/${pod}/attach?stdin=true`] },
    { what: 'forward a port of it', method: 'POST', path: ['api/v1', `pods/${pod}/portforward?ports=80`] },
    { what: 'proxy to it', method: 'GET', path: ['api/v1', `pods/${pod}/proxy/`] },
    { what: 'proxy to a service', method: 'GET', path: ['api/v1', 'services/web/proxy/'] },
    {
      what: 'make a pod',
      method: 'POST',
      path: ['api/v1', 'pods'],
      body: object('Pod', 'v1', 'squatter', { spec: { containers: [container] } }),
    },
    { what: 'delete the pod', method: 'DELETE', path: ['api/v1', `pods/${pod}`] },
    {
      what: 'change its labels',
      method: 'PATCH',
      path: ['api/v1', `pods/${pod}`],
      body: { metadata: { labels: { app: 'x' } } },
      contentType: 'application/merge-patch+json',
    },
    { what: 'delete all pods', method: 'DELETE', path: ['api/v1', 'pods'] },
    {
      what: 'make a secret',
      method: 'POST',
      path: ['api/v1', 'secrets'],
      body: object('Secret', 'v1', 'token', {
        type: 'kubernetes.io/service-account-token',
        metadata: { name: 'token', annotations: { 'kubernetes.io/service-account.name': 'temper-agent' } },
      }),
    },
    {
      what: 'make a service',
      method: 'POST',
      path: ['api/v1', 'services'],
      body: object('Service', 'v1', 'takeover', { spec: { ports: [{ port: 8443 }], externalIPs: ['10.96.0.77'] } }),
    },
    {
      what: 'make a service account',
      method: 'POST',
      path: ['api/v1', 'serviceaccounts'],
      body: object('ServiceAccount', 'v1', 'other'),
    },
    {
      what: 'open the network',
      method: 'POST',
      path: ['apis/networking.k8s.io/v1', 'networkpolicies'],
      body: object('NetworkPolicy', 'networking.k8s.io/v1', 'allow-all', { spec: allowAll }),
    },
    {
      what: 'delete the policy that closes it',
      method: 'DELETE',
      path: ['apis/networking.k8s.io/v1', 'networkpolicies/temper-deny-all'],
    },
    {
      what: 'make a deployment',
      method: 'POST',
      path: ['apis/apps/v1', 'deployments'],
      body: object('Deployment', 'apps/v1', 'web', { spec: { selector, template: always } }),
    },
    {
      what: 'make a daemon set',
      method: 'POST',
      path: ['apis/apps/v1', 'daemonsets'],
      body: object('DaemonSet', 'apps/v1', 'web', { spec: { selector, template: always } }),
    },
    {
      what: 'make a job',
      method: 'POST',
      path: ['apis/batch/v1', 'jobs'],
      body: object('Job', 'batch/v1', 'work', { spec: { template } }),
    },
    {
      what: 'make a replication controller',
      method: 'POST',
      path: ['api/v1', 'replicationcontrollers'],
      body: object('ReplicationController', 'v1', 'web', {
        spec: { replicas: 1, selector: { app: 'x' }, template: always },
      }),
    },
  ];
}
