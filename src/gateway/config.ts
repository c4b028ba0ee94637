import { readFile } from 'node:fs/promises';
import { type Static, Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { parse } from 'yaml';
import { PORTS, RELEASE_OBJECTS } from '../api/cluster.ts';
import { closed } from '../api/v1alpha1/common.ts';
import type { McpServerTarget } from '../capabilities/assess.ts';
import { McpServersSection } from '../capabilities/mcp-servers.ts';
import { type Connection, parseConnections } from '../connections/connection.ts';
import { messageOf, TemperError } from '../lib/errors.ts';
import { DEFAULT_MAX_CONNECTIONS } from '../net/connection-limits.ts';
import { parseModelConfig } from './models/config.ts';
import type { StorageLimits } from '../nats/residents/storage-limits.ts';
import { StorageSection, storageLimits } from './storage/config.ts';
import {
  type DatabaseService,
  parseDatabaseServices,
  parseSearchService,
  type SearchService,
} from './services/config.ts';
import { Namespace } from './users/messages.ts';
import { TracingSection } from './tracing/config.ts';

const Path = (description: string) => Type.String({ minLength: 1, maxLength: 4_096, description });
const Port = (description: string) => Type.Integer({ minimum: 0, maximum: 65_535, description });
const Host = Type.String({ minLength: 1, maxLength: 253, description: 'Address to listen on. Default all.' });

/** The configuration file of `temper serve gateway`. */
const GatewayConfigFile = Type.Object(
  {
    listen: Type.Optional(Type.Object({ host: Type.Optional(Host), port: Type.Optional(Port('HTTPS.')) }, closed)),
    health: Type.Optional(Type.Object({ host: Type.Optional(Host), port: Type.Optional(Port('HTTP.')) }, closed)),
    webhooks: Type.Optional(Type.Object({ host: Type.Optional(Host), port: Port('HTTPS. Absent: none.') }, closed)),
    tls: Type.Object({ certificate: Path('PEM file with the chain.'), key: Path('PEM file.') }, closed),
    nats: Type.Object(
      {
        servers: Type.Array(Type.String({ pattern: '^(tls|nats)://[^\\s/]+$', maxLength: 512 }), {
          minItems: 1,
          maxItems: 16,
        }),
        seedFile: Path('The nkey seed of user `gateway`.'),
        caFile: Type.Optional(
          Path("The CA of the servers' certificates. Without it the connection to NATS has no TLS."),
        ),
        release: Type.Optional(
          Type.String({
            minLength: 1,
            maxLength: 128,
            description: 'The release, as the operator names it. Default `temper`.',
          }),
        ),
      },
      closed,
    ),
    kubernetes: Type.Optional(Type.Object({ kubeconfig: Path('Absent: the ServiceAccount of the pod.') }, closed)),
    namespaces: Type.Optional(
      Type.Array(Namespace, { minItems: 1, maxItems: 1_000, description: 'Namespaces of agents. Absent: all.' }),
    ),
    releaseNamespace: Type.Optional({
      ...Namespace,
      description:
        'The namespace of the release, whose verifier pods this gateway serves and whose signed heads it writes to Git. Absent: none.',
    }),
    egressProxy: Type.Optional(
      Type.Boolean({
        description: 'The release runs an egress proxy, so that tools which fetch may succeed. Default no.',
      }),
    ),
    deliveryTokenKeys: Type.Array(Path('At least 32 bytes.'), {
      minItems: 1,
      maxItems: 2,
      description: 'Keys of delivery tokens. The first signs; both verify. The second file may be missing.',
    }),
    sourceKeys: Type.Optional(
      Path(
        'Keys of the sources that agents withhold, as the operator writes them. Absent: no such tool is stored or served.',
      ),
    ),
    logLevel: Type.Optional(Type.Enum(['debug', 'info', 'warn', 'error'])),
    maxConnections: Type.Optional(
      Type.Integer({ minimum: 100, maximum: 100_000, description: 'Open connections; further ones are closed.' }),
    ),
    a2a: Type.Optional(
      Type.Object(
        {
          url: Type.Optional(
            Type.String({
              pattern: '^https?://[A-Za-z0-9.:\\[\\]-]+$',
              maxLength: 512,
              description: 'The address of the gateway in agent cards, without a path.',
            }),
          ),
        },
        closed,
      ),
    ),
    connections: Type.Optional(Type.Unknown({ description: 'Credentials for Git servers and for tools.' })),
    egress: Type.Optional(
      Type.Object(
        {
          endpoints: Path('Folder with `egress`, `egress-name`, `ca.crt` and perhaps `egress-ca.crt`.'),
          tokenFile: Path('The token of the gateway for the audience `temper-egress`.'),
        },
        { ...closed, description: 'The egress proxy, for tools that the gateway executes. Absent: it executes none.' },
      ),
    ),
    mcpServers: Type.Optional(McpServersSection),
    webSearch: Type.Optional(
      Type.Unknown({ description: 'The search service of the tool `web_search`. Absent: no agent has it.' }),
    ),
    databases: Type.Optional(
      Type.Unknown({ description: 'Databases for the tool `sql_query`, each for some namespaces.' }),
    ),
    models: Type.Optional(Type.Unknown({ description: 'Providers, prices and names of models.' })),
    storage: Type.Optional(StorageSection),
    tracing: Type.Optional(TracingSection),
  },
  closed,
);

/** Where the gateway finds the egress proxy. */
export interface EgressFiles {
  /** Folder with `egress`, `egress-name`, `ca.crt` and perhaps `egress-ca.crt`. */
  endpoints: string;
  /** The token of this gateway for the audience of the proxy. */
  tokenFile: string;
}

export interface GatewayConfig {
  listen: { host: string; port: number };
  health: { host: string; port: number };
  /** Where requests from outside arrive. Absent: nowhere. */
  webhooks?: { host: string; port: number };
  tls: { certificate: string; key: string };
  nats: { servers: string[]; seedFile: string; caFile?: string; release?: string };
  storage: StorageLimits;
  /** Path of a kubeconfig; absent: the ServiceAccount of the pod. */
  kubeconfig: string | undefined;
  /** Undefined: all. */
  namespaces: string[] | undefined;
  /** The namespace of verifier pods. Undefined: no verifier is served. */
  releaseNamespace?: string | undefined;
  /** The release runs an egress proxy. */
  hasEgress: boolean;
  deliveryTokenKeys: string[];
  /** File with the keys of withheld sources. */
  sourceKeys?: string | undefined;
  logLevel: 'debug' | 'info' | 'warn' | 'error';
  maxConnections: number;
  /** The address of this gateway in agent cards, without a path. */
  a2aUrl: string;
  /** Credentials, each tied to hosts and namespaces. */
  connections: Connection[];
  /** MCP servers that the platform runs. */
  mcpServers: readonly McpServerTarget[];
  /** The egress proxy. Absent: the gateway executes no tools of Capabilities. */
  egress?: EgressFiles;
  webSearch?: SearchService | undefined;
  databases: readonly DatabaseService[];
  /** Validated and used by the model module. */
  models: unknown;
  /** Absent: tracing is off. */
  tracing?: TracingSection;
}

/** Throws TEMPER_CONFIGURATION_INVALID with the field and the rule. */
export function gatewayConfig(value: unknown): GatewayConfig {
  const check = Compile(GatewayConfigFile);
  if (!check.Check(value)) {
    const violations = check.Errors(value).slice(0, 5);
    const list = violations.map(({ instancePath, message }) => `${instancePath || '/'} ${message}`).join('; ');
    throw new TemperError('TEMPER_CONFIGURATION_INVALID', `the gateway's configuration: ${list}`);
  }
  const file: Static<typeof GatewayConfigFile> = value;
  checkModels(file.models);
  return {
    ...addresses(file),
    tls: file.tls,
    nats: file.nats,
    storage: storageLimits(file.storage),
    kubeconfig: file.kubernetes?.kubeconfig,
    namespaces: file.namespaces,
    releaseNamespace: file.releaseNamespace,
    hasEgress: file.egressProxy === true,
    deliveryTokenKeys: file.deliveryTokenKeys,
    sourceKeys: file.sourceKeys,
    logLevel: file.logLevel ?? 'info',
    maxConnections: file.maxConnections ?? DEFAULT_MAX_CONNECTIONS,
    a2aUrl: a2aUrlOf(file),
    connections: connectionsOf(file),
    mcpServers: file.mcpServers ?? [],
    models: file.models,
    webSearch: parseSearchService(file.webSearch, file.egress !== undefined, "the gateway's configuration"),
    databases: parseDatabaseServices(file.databases, "the gateway's configuration"),
    ...(file.egress === undefined ? {} : { egress: file.egress }),
    ...(file.tracing === undefined ? {} : { tracing: file.tracing }),
  };
}

/** Agents read and push through the egress proxy, which charges them; it reaches no private network. */
function connectionsOf({ connections: section, egress }: Static<typeof GatewayConfigFile>): Connection[] {
  const connections = parseConnections(section, "the gateway's configuration");
  const index = connections.findIndex((one) => one.repository !== undefined && one.private !== true);
  if (index < 0 || egress !== undefined) return connections;
  const problem = `connections/${index}/repository is reached through the egress proxy; set egress, or private`;
  throw new TemperError('TEMPER_CONFIGURATION_INVALID', `the gateway's configuration: ${problem}`);
}

function addresses({
  listen,
  health,
  webhooks,
}: Static<typeof GatewayConfigFile>): Pick<GatewayConfig, 'listen' | 'health' | 'webhooks'> {
  return {
    listen: { host: listen?.host ?? '::', port: listen?.port ?? PORTS.gateway },
    health: { host: health?.host ?? '::', port: health?.port ?? PORTS.health },
    ...(webhooks === undefined ? {} : { webhooks: { host: '::', ...webhooks } }),
  };
}

function a2aUrlOf({ a2a, releaseNamespace: namespace }: Static<typeof GatewayConfigFile>): string {
  const { gateway } = RELEASE_OBJECTS;
  return a2a?.url ?? `https://${namespace === undefined ? gateway : `${gateway}.${namespace}.svc`}:${PORTS.gateway}`;
}

/** Fails at startup for an invalid `models` section, before the connection to NATS. */
function checkModels(section: unknown): void {
  try {
    parseModelConfig(section);
  } catch (error) {
    const message = `the gateway's configuration: ${messageOf(error, 1_000)}`;
    throw new TemperError('TEMPER_CONFIGURATION_INVALID', message, { cause: error });
  }
}

/** Reads a YAML or JSON file. Throws TEMPER_CONFIGURATION_INVALID with the path. */
export async function readGatewayConfig(path: string): Promise<GatewayConfig> {
  try {
    return gatewayConfig(parse(await readFile(path, 'utf8')));
  } catch (error) {
    const message = `${path}: ${messageOf(error, 1_000)}`;
    throw new TemperError('TEMPER_CONFIGURATION_INVALID', message, { cause: error });
  }
}
