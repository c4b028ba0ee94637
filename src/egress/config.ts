import { readFile } from 'node:fs/promises';
import { type Static, Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { parse } from 'yaml';
import { PORTS } from '../api/cluster.ts';
import { closed } from '../api/v1alpha1/common.ts';
import { messageOf, TemperError } from '../lib/errors.ts';
import { addressRanges } from '../net/address-ranges.ts';
import { DEFAULT_MAX_CONNECTIONS } from '../net/connection-limits.ts';
import type { UpstreamProxy } from './route/upstream-proxy.ts';

const Path = (description: string) => Type.String({ minLength: 1, maxLength: 4_096, description });
const Port = (description: string) => Type.Integer({ minimum: 0, maximum: 65_535, description });
const Host = Type.String({ minLength: 1, maxLength: 253, description: 'Address to listen on. Default all.' });

/** `http://host:port`; a file has the password. */
const HTTP_PROXY = /^http:\/\/([A-Za-z0-9._-]{1,253})(?::(\d{1,5}))?\/?$/;

/** The configuration file of `temper serve egress`. */
const EgressConfigFile = Type.Object(
  {
    listen: Type.Optional(Type.Object({ host: Type.Optional(Host), port: Type.Optional(Port('HTTPS.')) }, closed)),
    health: Type.Optional(Type.Object({ host: Type.Optional(Host), port: Type.Optional(Port('HTTP.')) }, closed)),
    tls: Type.Object({ certificate: Path('PEM file with the chain.'), key: Path('PEM file.') }, closed),
    gateway: Type.Object(
      {
        endpoints: Path('Folder with the files `gateway`, `gateway-name` and `ca.crt`.'),
        tokenFile: Path('The token of the proxy for the audience `temper-gateway`.'),
      },
      closed,
    ),
    excludedRanges: Type.Optional(
      Type.Array(Type.String({ maxLength: 100 }), {
        maxItems: 256,
        description:
          'Public addresses that no agent reaches, such as those of the pods, Services and nodes of the cluster. Addresses that are not public never need an entry.',
      }),
    ),
    httpsProxy: Type.Optional(
      Type.String({
        maxLength: 512,
        pattern: HTTP_PROXY.source,
        description: 'The HTTP proxy that every connection to the internet passes.',
      }),
    ),
    httpsProxyCredentialFile: Type.Optional(Path('File with `user:password` of that proxy.')),
    logLevel: Type.Optional(Type.Enum(['debug', 'info', 'warn', 'error'])),
    maxConnections: Type.Optional(
      Type.Integer({ minimum: 100, maximum: 100_000, description: 'Open connections; further ones are closed.' }),
    ),
  },
  closed,
);

export interface EgressConfig {
  listen: { host: string; port: number };
  health: { host: string; port: number };
  tls: { certificate: string; key: string };
  gateway: { endpoints: string; tokenFile: string };
  isExcluded: (address: string) => boolean;
  /** Absent: connections lead to their targets directly. */
  upstreamProxy?: UpstreamProxy;
  logLevel: 'debug' | 'info' | 'warn' | 'error';
  maxConnections: number;
}

/** Throws TEMPER_CONFIGURATION_INVALID with the field and the rule. */
export function egressConfig(value: unknown): EgressConfig {
  const check = Compile(EgressConfigFile);
  if (!check.Check(value)) {
    const violations = check.Errors(value).slice(0, 5);
    const list = violations.map(({ instancePath, message }) => `${instancePath || '/'} ${message}`).join('; ');
    throw new TemperError('TEMPER_CONFIGURATION_INVALID', `the configuration of the egress proxy: ${list}`);
  }
  const file: Static<typeof EgressConfigFile> = value;
  const { listen, health, tls, gateway, excludedRanges, logLevel, maxConnections } = file;
  const upstreamProxy = upstreamProxyOf(file);
  return {
    listen: { host: listen?.host ?? '::', port: listen?.port ?? PORTS.egress },
    health: { host: health?.host ?? '::', port: health?.port ?? PORTS.health },
    tls,
    gateway,
    isExcluded: addressRanges(excludedRanges ?? []),
    ...(upstreamProxy === undefined ? {} : { upstreamProxy }),
    logLevel: logLevel ?? 'info',
    maxConnections: maxConnections ?? DEFAULT_MAX_CONNECTIONS,
  };
}

function upstreamProxyOf({
  httpsProxy,
  httpsProxyCredentialFile: credentialFile,
}: Static<typeof EgressConfigFile>): UpstreamProxy | undefined {
  if (httpsProxy === undefined) {
    if (credentialFile === undefined) return undefined;
    throw new TemperError(
      'TEMPER_CONFIGURATION_INVALID',
      '/httpsProxyCredentialFile: without httpsProxy no proxy gets it; set httpsProxy too',
    );
  }
  const [, host = '', digits = '80'] = HTTP_PROXY.exec(httpsProxy) ?? [];
  const port = Number(digits);
  if (port < 1 || port > 65_535) {
    throw new TemperError('TEMPER_CONFIGURATION_INVALID', `/httpsProxy: port ${port} does not exist`);
  }
  return { host: host.toLowerCase(), port, ...(credentialFile === undefined ? {} : { credentialFile }) };
}

/** Reads YAML or JSON. Throws TEMPER_CONFIGURATION_INVALID. */
export async function readEgressConfig(path: string): Promise<EgressConfig> {
  try {
    return egressConfig(parse(await readFile(path, 'utf8')));
  } catch (error) {
    const message = `${path}: ${messageOf(error, 1_000)}`;
    throw new TemperError('TEMPER_CONFIGURATION_INVALID', message, { cause: error });
  }
}
