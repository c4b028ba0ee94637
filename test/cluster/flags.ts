import { join } from 'node:path';

/** The command lines of what every cluster of the tests runs. Pure: the same for the control plane alone and for a node. */

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

/** `address` is the one it listens on and tells others. */
export function apiServerFlags(pki: string, place: { etcd: number; address: string; port: number }): string[] {
  return [
    `--etcd-servers=http://127.0.0.1:${place.etcd}`,
    `--bind-address=${place.address}`,
    `--advertise-address=${place.address}`,
    `--secure-port=${place.port}`,
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
    // Its own limit of 20 a second makes its start five times as long.
    '--kube-api-qps=1000',
    '--kube-api-burst=1000',
  ];
}

/** How soon a node that does not report is called silent. */
export function nodeGraceFlags(seconds: number): string[] {
  return [`--node-monitor-grace-period=${seconds}s`, '--node-monitor-period=1s'];
}

export function featureGateFlags(gates: Readonly<Record<string, boolean>>): string[] {
  const list = Object.entries(gates).map(([name, on]) => `${name}=${on}`);
  return list.length === 0 ? [] : [`--feature-gates=${list.join(',')}`];
}
