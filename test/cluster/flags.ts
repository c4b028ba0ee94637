import { join } from 'node:path';

/** Command-line flags of the components of test clusters. Shared by the control plane alone and by the node. No side effects. */

export function etcdFlags(dataDir: string, ports: { client: number; peer: number }): string[] {
  const client = `http://127.0.0.1:${ports.client}`;
  const peer = `http://127.0.0.1:${ports.peer}`;
  return [
    `--data-dir=${dataDir}`,
    '--unsafe-no-fsync',
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=default=${peer}`,
    '--log-level=warn',
  ];
}

/** `address` is both the bind address and the advertised address. */
export function apiServerFlags(pki: string, endpoints: { etcd: number; address: string; port: number }): string[] {
  return [
    `--etcd-servers=http://127.0.0.1:${endpoints.etcd}`,
    `--bind-address=${endpoints.address}`,
    `--advertise-address=${endpoints.address}`,
    `--secure-port=${endpoints.port}`,
    `--tls-cert-file=${join(pki, 'apiserver.crt')}`,
    `--tls-private-key-file=${join(pki, 'apiserver.key')}`,
    `--client-ca-file=${join(pki, 'ca.crt')}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    `--service-account-key-file=${join(pki, 'sa.pub')}`,
    `--service-account-signing-key-file=${join(pki, 'sa.key')}`,
    '--service-cluster-ip-range=10.96.0.0/16',
    '--authorization-mode=Node,RBAC',
    '--profiling=false',
  ];
}

export function controllerManagerFlags(pki: string, kubeconfig: string): string[] {
  return [
    `--kubeconfig=${kubeconfig}`,
    '--bind-address=127.0.0.1',
    '--secure-port=0',
    '--use-service-account-credentials',
    `--service-account-private-key-file=${join(pki, 'sa.key')}`,
    `--root-ca-file=${join(pki, 'ca.crt')}`,
    '--leader-elect=false',
    // With its default limit of 20 requests per second the start takes five times as long.
    '--kube-api-qps=1000',
    '--kube-api-burst=1000',
  ];
}

/** Seconds without a report after which a node is marked as not ready. */
export function nodeMonitorFlags(seconds: number): string[] {
  return [`--node-monitor-grace-period=${seconds}s`, '--node-monitor-period=1s'];
}

export function featureGateFlags(gates: Readonly<Record<string, boolean>>): string[] {
  const list = Object.entries(gates).map(([name, on]) => `${name}=${on}`);
  return list.length === 0 ? [] : [`--feature-gates=${list.join(',')}`];
}
