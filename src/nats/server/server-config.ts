import { TemperError } from '../../lib/errors.ts';
import { type NatsClusterConfig, clusterBlock, SERVER_NAME_VARIABLE } from './cluster-config.ts';
import { checked, integer, PATH, quoted } from './config-values.ts';
import { gatewayPermissions, operatorPermissions, systemPermissions } from './permissions.ts';
import { MAX_CONSUMERS } from '../jetstream/names.ts';
import { SYSTEM_USER } from './reload.ts';

export interface NatsPermissions {
  /** Subjects, wildcards allowed. */
  publish: readonly string[];
  /** The user's private inbox is always added. */
  subscribe: readonly string[];
}

export interface NatsUser {
  /** The user's private inbox is `_INBOX_<name>.>`. */
  name: string;
  /** Public nkey, `U…`. */
  publicKey: string;
  /** Not allowed for `operator` and `gateway`, whose permissions are fixed; required for every other user. */
  permissions?: NatsPermissions;
}

export interface ServerConfigOptions {
  users: readonly NatsUser[];
  /** Public nkey of the user that may request a configuration reload. */
  systemKey?: string;
  /** Absolute paths in the server's file system. */
  certificateFile: string;
  keyFile: string;
  storeFolder: string;
  /** Maximum size of all streams together. */
  storeBytes: number;
  /** Undefined in a cluster: the environment variable `SERVER_NAME` of each server is its name. */
  serverName: string | undefined;
  /** Default 4222. */
  port?: number;
  /** Default 0.0.0.0. */
  host?: string;
  /** Default 8222. Listens on loopback only; in a cluster on `host`, because the probes ask whether JetStream is ready. */
  monitoringPort?: number;
  cluster?: NatsClusterConfig;
}

const NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const PUBLIC_KEY = /^U[A-Z2-7]{55}$/;
const HOST = /^[0-9a-fA-F.:]{2,45}$/;
const SUBJECT = /^[A-Za-z0-9_$*>=.-]{1,200}$/;
const FIXED_PERMISSIONS = { operator: operatorPermissions, gateway: gatewayPermissions } as const;

/**
 * The text of a `nats-server.conf`: users by nkey with their permissions, TLS, storage synced before a message is acknowledged;
 * no anonymous user, no websocket, MQTT or leaf nodes. Throws TEMPER_USAGE for an invalid name, key or path.
 */
export function serverConfig(options: ServerConfigOptions): string {
  const { port = 4_222, host = '0.0.0.0', monitoringPort = 8_222, serverName, cluster } = options;
  const address = checked('the host', host, HOST);
  return `server_name: ${serverName === undefined ? `$${SERVER_NAME_VARIABLE}` : quoted('the server name', serverName, NAME)}
listen: "${address}:${integer('the port', port)}"
http: "${cluster === undefined ? '127.0.0.1' : address}:${integer('the monitoring port', monitoringPort)}"

tls {
  cert_file: ${quoted('the certificate', options.certificateFile, PATH)}
  key_file: ${quoted('the key', options.keyFile, PATH)}
  min_version: "1.3"
  timeout: 5
}
${cluster === undefined ? '' : clusterBlock(cluster, { ...options, host })}
max_payload: 256KB
max_control_line: 4KB
max_pending: 16MB
max_connections: 1024
max_subscriptions: 65536
write_deadline: "2s"
no_fast_producer_stall: true
ping_interval: "20s"
ping_max: 2
lame_duck_grace_period: "2s"
lame_duck_duration: "30s"

jetstream {
  store_dir: ${quoted('the store', options.storeFolder, PATH)}
  max_memory_store: 0
  max_file_store: ${integer('the size of the store', options.storeBytes)}
  # By default a message is acknowledged up to two minutes before it is on the disk.
  sync_interval: always
}

system_account: SYSTEM
accounts {
  SYSTEM {${systemAccount(options.systemKey)}}
${account(options.users.map(userEntry))}
}
`;
}

/** Public nkeys of the two users; undefined where they are not known yet. */
export type AccountKeys = Readonly<Record<keyof typeof FIXED_PERMISSIONS, string | undefined>>;

/** The account in the format of nats-server, for a server that is not part of the installation. Throws TEMPER_USAGE for an invalid key. */
export function accountConfig(keys: AccountKeys): string {
  const entries = accountUsers(keys).users.map(({ name, nkey, publish, subscribe }) =>
    formatEntry(name, nkey, subjectList(publish), subjectList(subscribe)),
  );
  return `${account(entries)}\n`;
}

export function accountUsers(keys: AccountKeys) {
  const users = Object.entries(FIXED_PERMISSIONS).map(([name, { publish, subscribe }]) => {
    const key = keys[name as keyof AccountKeys];
    // No server accepts it, so it cannot stay in place unnoticed.
    const nkey = key === undefined ? `PUBLIC_NKEY_OF_${name}` : checked(`the key of "${name}"`, key, PUBLIC_KEY);
    return { name, nkey, publish, subscribe: [inboxOf(name), ...subscribe] };
  });
  return { jetstream: { max_consumers: MAX_CONSUMERS }, users };
}

function account(entries: readonly string[]): string {
  return `  TEMPER {
    jetstream { max_consumers: ${MAX_CONSUMERS} }
    users: [
${entries.join('\n')}
    ]
  }`;
}

function userEntry(user: NatsUser): string {
  const name = checked('the name of a user', user.name, NAME);
  const fixed = Object.hasOwn(FIXED_PERMISSIONS, name)
    ? FIXED_PERMISSIONS[name as keyof typeof FIXED_PERMISSIONS]
    : undefined;
  if ((fixed === undefined) === (user.permissions === undefined)) {
    throw new TemperError(
      'TEMPER_USAGE',
      fixed === undefined
        ? `the user "${name}" has no permissions; name the subjects it may publish and subscribe`
        : `the permissions of "${name}" are fixed; leave them out`,
    );
  }
  return formatUser(name, user.publicKey, fixed ?? user.permissions ?? { publish: [], subscribe: [] });
}

function systemAccount(key: string | undefined): string {
  if (key === undefined) return '';
  return `
    users: [
${formatUser(SYSTEM_USER, key, systemPermissions)}
    ]
  `;
}

function formatUser(name: string, publicKey: string, { publish, subscribe }: NatsPermissions): string {
  const key = checked(`the key of "${name}"`, publicKey, PUBLIC_KEY);
  return formatEntry(name, key, subjectList(publish), subjectList([inboxOf(name), ...subscribe]));
}

function inboxOf(name: string): string {
  return `_INBOX_${name}.>`;
}

function formatEntry(name: string, key: string, publish: string, subscribe: string): string {
  return `      # ${name}
      {
        nkey: "${key}"
        permissions: {
          publish: { allow: ${publish} }
          subscribe: { allow: ${subscribe} }
        }
      }`;
}

function subjectList(subjects: readonly string[]): string {
  // An empty list would allow everything.
  if (subjects.length === 0) return '["_NOTHING"]';
  return `[${subjects.map((subject) => quoted('a subject', subject, SUBJECT)).join(', ')}]`;
}
