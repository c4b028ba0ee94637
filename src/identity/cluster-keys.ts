import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose';
import type { Transport } from '../kube/transport.ts';
import type { Clock } from '../lib/clock.ts';
import { TemperError } from '../lib/errors.ts';
import { isJsonObject, textAt } from '../lib/json.ts';
import type { Logger } from '../telemetry/log.ts';

/** What a cluster signs its tokens with, as it publishes it. */
export interface PublishedKeys {
  issuer: string;
  keys: JSONWebKeySet;
}

/** Reads both from the API server, which lets every ServiceAccount do so. */
export async function readPublishedKeys(transport: Transport, signal: AbortSignal): Promise<PublishedKeys> {
  const [discovery, keys] = await Promise.all([
    transport.send({ method: 'GET', path: '/.well-known/openid-configuration' }, signal),
    transport.send({ method: 'GET', path: '/openid/v1/jwks', accept: 'application/jwk-set+json' }, signal),
  ]);
  const issuer = textAt(discovery, ['issuer']);
  if (issuer === '' || !isJsonObject(keys) || !Array.isArray(keys['keys']) || keys['keys'].length === 0) {
    throw new TemperError('TEMPER_KUBE_UNREACHABLE', 'the API server publishes no issuer or no keys of its tokens');
  }
  return { issuer, keys: keys as unknown as JSONWebKeySet };
}

/** Keys this old are read again when they are next used, so that one that was taken out stops counting. */
const OLD_MILLISECONDS = 300_000;
/** Between two readings that unknown keys ask for: strangers can name as many of those as they like. */
const PAUSE_MILLISECONDS = 10_000;
const READ_MILLISECONDS = 10_000;

interface Held extends PublishedKeys {
  find: JWTVerifyGetKey;
}

export interface ClusterKeysOptions {
  read: (signal: AbortSignal) => Promise<PublishedKeys>;
  clock: Clock;
  log: Logger;
}

/** The keys of the cluster, kept; read again when they are old or when a token names one that is not among them. */
export class ClusterKeys {
  readonly #options: ClusterKeysOptions;
  #held: Held | undefined;
  #readAt = Number.NEGATIVE_INFINITY;
  #triedAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;

  constructor(options: ClusterKeysOptions) {
    this.#options = options;
  }

  /** Changes whenever the keys do. */
  version = 0;

  /** Throws what reading throws while there are no keys at all. */
  async issuer(): Promise<string> {
    return (await this.#current()).issuer;
  }

  readonly find: JWTVerifyGetKey = async (header, token) => {
    const held = await this.#current();
    try {
      return await held.find(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey) || !this.#mayTry()) throw error;
      await this.#refresh();
      return (await this.#current()).find(header, token);
    }
  };

  async #current(): Promise<Held> {
    const now = this.#options.clock.monotonic();
    if (this.#held === undefined) await this.#refresh();
    else if (now - this.#readAt > OLD_MILLISECONDS && this.#mayTry()) await this.#refresh();
    if (this.#held === undefined) {
      throw new TemperError('TEMPER_OVERLOADED', 'the keys of the cluster are not known yet', { retry: 1_000 });
    }
    return this.#held;
  }

  #mayTry(): boolean {
    return this.#reading !== undefined || this.#options.clock.monotonic() - this.#triedAt >= PAUSE_MILLISECONDS;
  }

  /** One reading at a time. A failed one leaves what is there: the API server may be away for a while. */
  #refresh(): Promise<void> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #read(): Promise<void> {
    const { read, clock, log } = this.#options;
    this.#triedAt = clock.monotonic();
    try {
      const published = await read(AbortSignal.timeout(READ_MILLISECONDS));
      const changed = JSON.stringify(published) !== JSON.stringify(this.#published());
      this.#held = { ...published, find: createLocalJWKSet(published.keys) };
      this.#readAt = clock.monotonic();
      if (changed) this.version += 1;
    } catch (error) {
      log.warn({ error, known: this.#held !== undefined }, 'the keys of the cluster could not be read');
    }
  }

  #published(): PublishedKeys | undefined {
    return this.#held === undefined ? undefined : { issuer: this.#held.issuer, keys: this.#held.keys };
  }
}
