import { TemperError } from '../lib/errors.ts';

export interface BusPermissions {
  /** Subjects, wildcards allowed. */
  publish: readonly string[];
  subscribe: readonly string[];
}

export interface BusUser {
  /** Its private inbox is `_INBOX_<name>.>`. */
  name: string;
  /** Public nkey, `U…`. */
  publicKey: string;
  /** Not for `operator` and `gateway`, whose rights are fixed. */
  permissions?: BusPermissions;
}

export interface ServerConfigOptions {
  users: readonly BusUser[];
  /** Paths as the server sees them. */
  certificateFile: string;
  keyFile: string;
  storeFolder: string;
  /** Bytes all streams may take together. */
  storeBytes: number;
  serverName: string;
  /** Default 4222. */
  port?: number;
  /** Default 0.0.0.0. */
  host?: string;
  /** On loopback. Default 8222. */
  monitoringPort?: number;
}

/** The text of a `nats-server.conf`. Throws TEMPER_USAGE for a name, key or path that is none. */
export function serverConfig(_options: ServerConfigOptions): string {
  throw new TemperError('TEMPER_INTERNAL', 'not built yet');
}
