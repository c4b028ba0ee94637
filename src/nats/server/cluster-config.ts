import { checked, integer, PATH, quoted } from './config-values.ts';

/** The cluster that a server is part of. All servers of a cluster have the same configuration. */
export interface NatsClusterConfig {
  /** Port of the routes on this server. */
  port: number;
  /** `host:port` of every server of the cluster, this one included. The certificate has each host. */
  routes: readonly string[];
  /** CA that signed the certificates of the other servers. */
  caFile: string;
}

/** Environment variable with the name of the server, which differs between servers that share a configuration. */
export const SERVER_NAME_VARIABLE = 'SERVER_NAME';
const ROUTE = /^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?:[0-9]{1,5}$/;
const HOST = /^[0-9a-fA-F.:]{2,45}$/;

/**
 * The routes between the servers of a cluster. Both ends of a route present a certificate of the CA with the host name of a server, so
 * that neither a client nor another pod of the release can become a route.
 */
export function clusterBlock(
  cluster: NatsClusterConfig,
  { host, certificateFile, keyFile }: { host: string; certificateFile: string; keyFile: string },
): string {
  const routes = cluster.routes.map((route) => `"tls://${checked('a route', route, ROUTE)}"`);
  return `
cluster {
  name: "temper"
  listen: "${checked('the host', host, HOST)}:${integer('the port of routes', cluster.port)}"
  no_advertise: true
  # Until its routes end, a server that hangs is asked for a third of all reads. The default takes a minute to notice.
  ping_interval: "5s"
  ping_max: 2
  write_deadline: "10s"
  routes: [${routes.join(', ')}]
  tls {
    cert_file: ${quoted('the certificate', certificateFile, PATH)}
    key_file: ${quoted('the key', keyFile, PATH)}
    ca_file: ${quoted('the CA', cluster.caFile, PATH)}
    min_version: "1.3"
    verify_cert_and_check_known_urls: true
    timeout: 5
  }
}
`;
}
