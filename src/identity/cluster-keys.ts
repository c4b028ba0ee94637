import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose';
import type { Transport } from '../kube/client/transport.ts';
import { SingleFlight } from '../lib/async/single-flight.ts';
import type { Clock } from '../lib/clock.ts';
import { TemperError } from '../lib/errors.ts';
import { isJsonObject, textAt } from '../lib/json.ts';
import type { Logger } from '../telemetry/log.ts';

/** The issuer and the public keys (JWKS) with which a cluster signs its tokens. */
export interface PublishedKeys {
  issuer: string;
  keys: JSONWebKeySet;
}

/** Reads both from the API server; every ServiceAccount may read them. */
export async function readPublishedKeys(transport: Transport, signal: AbortSignal): Promise<PublishedKeys> {
  const [discovery, keys] = await Promise.all([
    transport.send({ method: 'GET', path: '/.well-known/openid-configuration' }, signal),
    transport.send({ method: 'GET', path: '/openid/v1/jwks', accept: 'application/jwk-set+json' }, signal),
  ]);
  const issuer = textAt(discovery, ['issuer']);
  if (issuer === '' || !isJsonObject(keys) || !Array.isArray(keys['keys']) || keys['keys'].length === 0) {
    throw new TemperError(
      'TEMPER_KUBE_UNREACHABLE',
      'the API server publishes no issuer or no signing keys for its tokens',
    );
  }
  return { issuer, keys: keys as unknown as JSONWebKeySet };
}

/** Keys older than this are refreshed at their next use, so that a removed key stops being accepted. */
const MAX_AGE_MS = 300_000;
/** The minimum time between two refreshes for unknown key ids: an untrusted client can send any number of unknown key ids. */
const MIN_REFRESH_INTERVAL_MS = 10_000;
const READ_TIMEOUT_MS = 10_000;

interface CachedKeys extends PublishedKeys {
  find: JWTVerifyGetKey;
}

export interface ClusterKeysOptions {
  read: (signal: AbortSignal) => Promise<PublishedKeys>;
  clock: Clock;
  log: Logger;
}

const KEYS = 'keys';

/** A cache of the cluster's keys; refreshed when the keys are old or when a token names an unknown key id. */
export class ClusterKeys {
  readonly #options: ClusterKeysOptions;
  #cached: CachedKeys | undefined;
  #readAt = Number.NEGATIVE_INFINITY;
  #triedAt = Number.NEGATIVE_INFINITY;
  readonly #reads = new SingleFlight<void>();

  constructor(options: ClusterKeysOptions) {
    this.#options = options;
  }

  /** Increments whenever the keys change. */
  version = 0;

  /** Throws TEMPER_OVERLOADED while no keys could be read. */
  async issuer(): Promise<string> {
    return (await this.#current()).issuer;
  }

  readonly getKey: JWTVerifyGetKey = async (header, token) => {
    const cached = await this.#current();
    try {
      return await cached.find(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey) || !this.#mayRefresh()) throw error;
      await this.#refresh();
      return (await this.#current()).find(header, token);
    }
  };

  async #current(): Promise<CachedKeys> {
    const now = this.#options.clock.monotonic();
    if (this.#cached === undefined) await this.#refresh();
    else if (now - this.#readAt > MAX_AGE_MS && this.#mayRefresh()) await this.#refresh();
    if (this.#cached === undefined) {
      throw new TemperError('TEMPER_OVERLOADED', 'the signing keys of the cluster are not available yet', {
        retry: 1_000,
      });
    }
    return this.#cached;
  }

  #mayRefresh(): boolean {
    return this.#reads.isRunning(KEYS) || this.#options.clock.monotonic() - this.#triedAt >= MIN_REFRESH_INTERVAL_MS;
  }

  /** A failed read keeps the cached keys: the API server may be unavailable for a while. */
  #refresh(): Promise<void> {
    return this.#reads.run(KEYS, () => this.#read());
  }

  async #read(): Promise<void> {
    const { read, clock, log } = this.#options;
    this.#triedAt = clock.monotonic();
    try {
      const published = await read(AbortSignal.timeout(READ_TIMEOUT_MS));
      const changed = JSON.stringify(published) !== JSON.stringify(this.#published());
      this.#cached = { ...published, find: createLocalJWKSet(published.keys) };
      this.#readAt = clock.monotonic();
      if (changed) this.version += 1;
    } catch (error) {
      log.warn({ error, known: this.#cached !== undefined }, 'the signing keys of the cluster could not be read');
    }
  }

  #published(): PublishedKeys | undefined {
    return this.#cached === undefined ? undefined : { issuer: this.#cached.issuer, keys: this.#cached.keys };
  }
}
