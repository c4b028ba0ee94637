import { PORTS, RELEASE_OBJECTS } from '../../api/cluster.ts';
import type { SecretData } from './release-secrets.ts';

/** One server alone, or a cluster. The servers of each read another member of the Secret, so that none starts as the other kind. */
const FILES = { single: 'nats-server.conf', cluster: 'nats-cluster.conf' } as const;

export interface NatsServerAddress {
  /** The name of its pod. */
  readonly name: string;
  /** `tls://host:port`, of this server alone. */
  readonly url: string;
}

/** The NATS servers of this release. */
export interface NatsLayout {
  /** Member of the Secret with the configuration. */
  readonly file: (typeof FILES)[keyof typeof FILES];
  readonly servers: readonly NatsServerAddress[];
  /** DNS names of the single servers of a cluster; empty for one server. */
  readonly hosts: readonly string[];
  /** Why these are not the configured servers; undefined when they are. */
  readonly conflict: string | undefined;
}

export interface NatsLayoutOptions {
  readonly namespace: string;
  /** URL of the Service. */
  readonly url: string;
  readonly replicas: number;
}

/**
 * Pure: the servers that exist. A server that leaves or joins a cluster with its store loses its streams: nats-server deletes streams
 * that the cluster does not know. So the layout is that of the stored configuration, until that is deleted together with the store.
 */
export function natsLayout(options: NatsLayoutOptions, stored: SecretData | undefined): NatsLayout {
  const isCluster = options.replicas > 1;
  const wasCluster = kindOf(stored) ?? isCluster;
  const conflict = wasCluster === isCluster ? undefined : conflictMessage(options.replicas);
  if (!wasCluster) {
    const servers = [{ name: `${RELEASE_OBJECTS.nats}-0`, url: options.url }];
    return { file: FILES.single, servers, hosts: [], conflict };
  }
  const replicas = isCluster ? options.replicas : CLUSTER_SIZE;
  const names = Array.from({ length: replicas }, (_, index) => `${RELEASE_OBJECTS.nats}-${index}`);
  const hosts = names.map((name) => `${name}.${RELEASE_OBJECTS.natsServers}.${options.namespace}.svc`);
  const servers = names.map((name, index) => ({ name, url: `tls://${hosts[index]}:${PORTS.nats}` }));
  return { file: FILES.cluster, servers, hosts, conflict };
}

/** The only size of a cluster that the chart installs. */
const CLUSTER_SIZE = 3;

function kindOf(stored: SecretData | undefined): boolean | undefined {
  if (stored?.[FILES.cluster] !== undefined) return true;
  return stored?.[FILES.single] === undefined ? undefined : false;
}

function conflictMessage(replicas: number): string {
  const before = replicas > 1 ? 'one NATS server' : 'a cluster of NATS servers';
  return `nats.replicas is ${replicas}, but this release has ${before}; a server that joins or leaves a cluster loses its streams. Set nats.replicas back, or replace the store as docs/reference/bus.md#change-the-number-of-servers describes`;
}
