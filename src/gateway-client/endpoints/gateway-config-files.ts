import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../lib/clock.ts';
import { hasErrno, TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';

/** Address of the gateway or the egress proxy, the server name and CA its certificate must match, and the token for it. */
export interface GatewayEndpoint {
  /** `https://address:port` */
  origin: string;
  serverName: string;
  /** PEM. */
  ca: string;
  /** Of the egress proxy: the certificate authorities to trust for its targets, PEM, when the platform has some beside the public ones. */
  targetAuthorities?: string;
  token: string;
}

export interface GatewayConfigFilesOptions {
  /** Folder with `gateway`, `gateway-name` and `ca.crt`. */
  folder: string;
  /** `egress`: the files are `egress`, `egress-name`, `ca.crt` and perhaps `egress-ca.crt`. Default `gateway`. */
  server?: 'gateway' | 'egress';
  tokenFile: string;
  clock: Clock;
}

/** Milliseconds for which the contents are used without reading the files again. */
const CACHE_TTL_MS = 1_000;
const MAX_BYTES = 65_536;
const MAX_AUTHORITIES_BYTES = 300_000;

/** Reads the address of a server of the installation and the token for it. Kubernetes replaces these files while the pod runs, so they are read repeatedly. */
export class GatewayConfigFiles {
  readonly #options: GatewayConfigFilesOptions;
  #endpoint: GatewayEndpoint | undefined;
  #readAt = Number.NEGATIVE_INFINITY;

  constructor(options: GatewayConfigFilesOptions) {
    this.#options = options;
  }

  /** `recent`: contents read at most one second ago. `reread`: reads the files now. Throws TEMPER_POD_INVALID. */
  async current(now: 'recent' | 'reread' = 'recent'): Promise<GatewayEndpoint> {
    const { clock } = this.#options;
    if (now === 'recent' && this.#endpoint !== undefined && clock.monotonic() - this.#readAt < CACHE_TTL_MS)
      return this.#endpoint;
    this.#endpoint = await this.#read();
    this.#readAt = clock.monotonic();
    return this.#endpoint;
  }

  async #read(): Promise<GatewayEndpoint> {
    const { folder, tokenFile, server = 'gateway' } = this.#options;
    const [origin, serverName, ca, token, targetAuthorities] = await Promise.all([
      textOf(join(folder, server)),
      textOf(join(folder, `${server}-name`)),
      textOf(join(folder, 'ca.crt')),
      textOf(tokenFile),
      server === 'egress' ? optionalTextOf(join(folder, 'egress-ca.crt'), MAX_AUTHORITIES_BYTES) : undefined,
    ]);
    const address = URL.parse(origin);
    if (address === null || address.protocol !== 'https:' || address.pathname !== '/') {
      throw invalid(join(folder, server), 'is not of the form https://address:port');
    }
    const endpoint = { origin: address.origin, serverName, ca, token };
    return targetAuthorities === undefined ? endpoint : { ...endpoint, targetAuthorities };
  }
}

async function optionalTextOf(file: string, maxBytes: number): Promise<string | undefined> {
  try {
    return await textOf(file, maxBytes);
  } catch (error) {
    if (error instanceof TemperError && hasErrno(error.cause, 'ENOENT')) return undefined;
    throw error;
  }
}

async function textOf(file: string, maxBytes = MAX_BYTES): Promise<string> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (cause) {
    throw invalid(file, 'cannot be read', cause);
  }
  const trimmed = text.trim();
  if (trimmed === '' || text.length > maxBytes) throw invalid(file, 'is empty or too large');
  return trimmed;
}

function invalid(file: string, problem: string, cause?: unknown): TemperError {
  return new TemperError('TEMPER_POD_INVALID', `${printable(file, 200)} ${problem}`, { retry: 'backoff', cause });
}
