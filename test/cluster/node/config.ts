import { join } from 'node:path';
import { apiServerFlags } from '../flags.ts';
import { API_SERVER_NAMES, type Identity } from '../pki.ts';

/** Configuration files and command-line flags of a node. No side effects. */

export const API_PORT = 6443;
export const CONTAINERD = '/run/containerd/containerd.sock';
const POD_RANGE = '10.244.0.0/16';
export const DNS_ADDRESS = '10.96.0.10';
/** Names below `example.com` come from here, once a test runs a name server at this address of the node. */
export const TEST_NAME_SERVER = '198.51.100.53';
export const PAUSE_IMAGE = 'localhost/pause:1';
export const NODE_NAME = 'node1';
/** The CNI plugin that waits until the network policies are enforced. */
export const POLICY_PLUGIN = 'network-policy';

export function identitiesOf(node: string): Identity[] {
  return [
    { name: 'apiserver', subject: '/CN=kube-apiserver', alternativeNames: `${API_SERVER_NAMES},IP:${node}` },
    { name: 'admin', subject: '/O=system:masters/CN=admin' },
    { name: 'controller-manager', subject: '/CN=system:kube-controller-manager' },
    { name: 'scheduler', subject: '/CN=system:kube-scheduler' },
    { name: 'proxy', subject: '/CN=system:kube-proxy' },
    // Reads all pods, namespaces and policies; no built-in role has exactly these rights.
    { name: 'network-policy', subject: '/O=system:masters/CN=network-policy' },
    {
      name: 'kubelet',
      subject: `/O=system:nodes/CN=system:node:${NODE_NAME}`,
      alternativeNames: `DNS:${NODE_NAME},IP:${node}`,
    },
  ];
}

export function nodeApiServerFlags(pki: string, node: string): string[] {
  return [
    ...apiServerFlags(pki, { etcd: 2379, address: node, port: API_PORT }),
    '--enable-admission-plugins=NodeRestriction',
    `--kubelet-client-certificate=${join(pki, 'admin.crt')}`,
    `--kubelet-client-key=${join(pki, 'admin.key')}`,
    `--kubelet-certificate-authority=${join(pki, 'ca.crt')}`,
    // Otherwise logs and exec use the node's name, which no DNS server resolves.
    '--kubelet-preferred-address-types=InternalIP',
  ];
}

/** The kubelet's configuration as JSON, which is valid YAML. `cgroup` is the parent of all pods' cgroups. */
export function kubeletConfig(pki: string, cgroup: string): string {
  return JSON.stringify({
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    containerRuntimeEndpoint: `unix://${CONTAINERD}`,
    authentication: {
      x509: { clientCAFile: join(pki, 'ca.crt') },
      anonymous: { enabled: false },
      webhook: { enabled: true },
    },
    authorization: { mode: 'Webhook' },
    tlsCertFile: join(pki, 'kubelet.crt'),
    tlsPrivateKeyFile: join(pki, 'kubelet.key'),
    clusterDNS: [DNS_ADDRESS],
    clusterDomain: 'cluster.local',
    resolvConf: '',
    failCgroupV1: false,
    cgroupDriver: 'cgroupfs',
    cgroupRoot: `/${cgroup}`,
    enforceNodeAllocatable: [],
    // With the default back-off, tests that kill a container many times wait for minutes.
    crashLoopBackOff: { maxContainerRestartPeriod: '2s' },
    failSwapOn: false,
    serializeImagePulls: false,
    // Without this, a pod with an ephemeral-storage limit stays Pending.
    localStorageCapacityIsolation: true,
    // The machine is shared, so the node must not collect images or evict pods because other programs fill the disk.
    imageGCHighThresholdPercent: 100,
    evictionHard: { 'nodefs.available': '1%', 'imagefs.available': '1%', 'memory.available': '100Mi' },
  });
}

export function containerdConfig(folder: string): string {
  return `version = 2
root = "${join(folder, 'containerd')}"
state = "/run/containerd/state"
[grpc]
  address = "${CONTAINERD}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${PAUSE_IMAGE}"
  # Without this, no pod starts on machines where runc may not lower oom_score_adj.
  restrict_oom_score_adj = true
  # The default of later releases: any user in a pod may listen on ports below 1024 of the pod.
  enable_unprivileged_ports = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "${join(folder, 'cni-bin')}"
    conf_dir = "${join(folder, 'cni')}"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
`;
}

/** Pods are routed (`ptp`), not bridged, so that all their packets pass the nftables hooks of the policies. */
export function cniConfig(): string {
  const ranges = [[{ subnet: POD_RANGE }]];
  const ipam = { type: 'host-local', ranges, routes: [{ dst: '0.0.0.0/0' }], dataDir: '/var/lib/cni/addresses' };
  const plugins = [
    { type: 'ptp', ipMasq: false, ipam },
    { type: 'portmap', capabilities: { portMappings: true } },
    { type: POLICY_PLUGIN },
  ];
  return JSON.stringify({ cniVersion: '0.4.0', name: 'pods', plugins });
}

export function kubeletFlags(folder: string, node: string): string[] {
  return [
    `--config=${join(folder, 'kubelet.json')}`,
    `--kubeconfig=${join(folder, 'kubelet.kubeconfig')}`,
    `--hostname-override=${NODE_NAME}`,
    `--node-ip=${node}`,
    '--root-dir=/var/lib/kubelet',
  ];
}

export function proxyFlags(folder: string): string[] {
  return [
    `--kubeconfig=${join(folder, 'proxy.kubeconfig')}`,
    '--proxy-mode=nftables',
    `--hostname-override=${NODE_NAME}`,
    `--cluster-cidr=${POD_RANGE}`,
    // 0 keeps the machine's own conntrack limit.
    '--conntrack-max-per-core=0',
  ];
}
