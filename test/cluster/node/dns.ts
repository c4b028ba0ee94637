import { DNS_ADDRESS, TEST_NAME_SERVER } from './config.ts';

export const DNS_IMAGE = 'localhost/coredns:1.15.0';

const NAME = 'coredns';
const metadata = { name: NAME, namespace: 'kube-system' };
const labels = { 'k8s-app': 'kube-dns' };

const COREFILE = `.:53 {
  errors
  health
  ready
  kubernetes cluster.local in-addr.arpa {
    ttl 5
  }
  forward example.com ${TEST_NAME_SERVER}
}
`;

const POD_SPEC = {
  serviceAccountName: NAME,
  priorityClassName: 'system-cluster-critical',
  // The DNS server must not resolve through itself.
  dnsPolicy: 'Default',
  containers: [
    {
      name: NAME,
      image: DNS_IMAGE,
      args: ['-conf', '/etc/coredns/Corefile'],
      ports: [
        { name: 'dns', containerPort: 53, protocol: 'UDP' },
        { name: 'dns-tcp', containerPort: 53, protocol: 'TCP' },
      ],
      readinessProbe: { httpGet: { path: '/ready', port: 8181 }, periodSeconds: 1 },
      securityContext: {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        runAsUser: 65534,
        capabilities: { drop: ['ALL'] },
        seccompProfile: { type: 'RuntimeDefault' },
      },
      volumeMounts: [{ name: 'config', mountPath: '/etc/coredns', readOnly: true }],
    },
  ],
  volumes: [{ name: 'config', configMap: { name: NAME } }],
};

/** The objects of the cluster DNS, each with the path of its collection, in creation order. */
export const DNS_OBJECTS: readonly { path: string; body: object }[] = [
  { path: '/api/v1/namespaces/kube-system/serviceaccounts', body: { metadata } },
  {
    path: '/apis/rbac.authorization.k8s.io/v1/clusterroles',
    body: {
      metadata: { name: NAME },
      rules: [
        { apiGroups: [''], resources: ['services', 'namespaces'], verbs: ['list', 'watch'] },
        { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list', 'watch'] },
      ],
    },
  },
  {
    path: '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings',
    body: {
      metadata: { name: NAME },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: NAME },
      subjects: [{ kind: 'ServiceAccount', ...metadata }],
    },
  },
  { path: '/api/v1/namespaces/kube-system/configmaps', body: { metadata, data: { Corefile: COREFILE } } },
  {
    path: '/api/v1/namespaces/kube-system/services',
    body: {
      metadata: { name: 'kube-dns', namespace: 'kube-system', labels },
      spec: {
        clusterIP: DNS_ADDRESS,
        selector: labels,
        ports: [
          { name: 'dns', port: 53, protocol: 'UDP', targetPort: 'dns' },
          { name: 'dns-tcp', port: 53, protocol: 'TCP', targetPort: 'dns-tcp' },
        ],
      },
    },
  },
  {
    path: '/apis/apps/v1/namespaces/kube-system/deployments',
    body: { metadata, spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: POD_SPEC } } },
  },
];
