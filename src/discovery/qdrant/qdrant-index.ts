import { createHash } from 'node:crypto';
import type { QdrantClient } from '@qdrant/js-client-rest';
import { sha256 } from '../../lib/canonical.ts';
import type { Clock } from '../../lib/clock.ts';
import { messageOf, TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { compareText } from '../lexical/compare-text.ts';
import type { VectorEntry, VectorFilter, VectorHit, VectorIndex, VectorSpace } from '../vector/port.ts';
import { KnownPoints, type KnownPointsOptions } from './known-points.ts';

export interface QdrantIndexOptions {
  url: string;
  /** The API key; undefined for a server without keys. Called once per client. */
  key: () => Promise<string | undefined>;
  /** The beginning of the names of the collections. Releases that share a server have different ones. */
  prefix: string;
  /** The model whose vectors these are. Each model and number of dimensions has a collection of its own. */
  model: string;
  clock: Clock;
  timeoutMs?: number;
  known?: Partial<KnownPointsOptions>;
}

const TIMEOUT_MS = 1_500;
/** After a failure no request is made for this time, so that searches do not wait for a server that is not reachable. */
const COOL_DOWN_MS = 5_000;
/** IDs of one request. */
const MAX_IDS = 1_000;

/**
 * Vectors in Qdrant, which gateways share and which outlive them. A query is an exact comparison with the points of its filter, so its result is
 * that of the index in memory. Lost points are noticed within minutes and a lost collection is created again; searches embed the entries again.
 */
export class QdrantVectorIndex implements VectorIndex {
  readonly #options: QdrantIndexOptions;
  readonly #known: KnownPoints;
  #client: Promise<QdrantClient> | undefined;
  #pausedUntil = -Infinity;

  constructor(options: QdrantIndexOptions) {
    this.#options = options;
    this.#known = new KnownPoints(options.clock, options.known);
  }

  async missing(space: VectorSpace, ids: readonly string[]): Promise<string[]> {
    const key = this.#keyOf(space);
    const unsure = this.#known.unsure(key, ids);
    const missing: string[] = [];
    for (let from = 0; from < unsure.length; from += MAX_IDS) {
      const asked = unsure.slice(from, from + MAX_IDS);
      const existing = await this.#existing(space, asked);
      this.#known.seen(key, asked, existing);
      missing.push(...asked.filter((id) => !existing.has(id)));
    }
    return missing;
  }

  async upsert(space: VectorSpace, entries: readonly VectorEntry[]): Promise<void> {
    const name = this.#collectionOf(space);
    const { namespace, dimensions } = space;
    await this.#request(async (client) => {
      const { exists } = await client.collectionExists(name);
      // Another gateway may create it at the same time.
      if (!exists)
        await client
          .createCollection(name, { vectors: { size: dimensions, distance: 'Cosine' } })
          .catch(async (error: unknown) => {
            if (!(await client.collectionExists(name)).exists) throw error;
          });
      const points = entries.map(({ id, vector }) => ({
        id: pointOf(space, id),
        vector: Array.from(vector),
        payload: { namespace },
      }));
      await client.upsert(name, { points, wait: true });
    });
    const stored = new Set(entries.map(({ id }) => id));
    this.#known.seen(this.#keyOf(space), stored, stored);
  }

  async query(
    space: VectorSpace,
    vectors: readonly Float32Array[],
    { ids, most }: VectorFilter,
  ): Promise<VectorHit[][]> {
    const key = this.#keyOf(space);
    const asked = new Map(ids.filter((id) => this.#known.has(key, id)).map((id) => [pointOf(space, id), id]));
    if (asked.size === 0) return vectors.map(() => []);
    const must = [{ has_id: [...asked.keys()] }, { key: 'namespace', match: { value: space.namespace } }];
    const limit = Math.min(most, asked.size);
    const lists = await this.#request((client) =>
      Promise.all(
        vectors.map((vector) =>
          client.query(this.#collectionOf(space), {
            query: Array.from(vector),
            filter: { must },
            params: { exact: true },
            limit,
          }),
        ),
      ),
    );
    // Points that are gone are embedded again at the next search.
    if (lists.some(({ points }) => points.length < limit)) this.#known.forget(key);
    return lists.map(({ points }) => hitsOf(points, asked));
  }

  async #existing(space: VectorSpace, ids: readonly string[]): Promise<Set<string>> {
    const byPoint = new Map(ids.map((id) => [pointOf(space, id), id]));
    const found = await this.#request(async (client) => {
      const name = this.#collectionOf(space);
      if (!(await client.collectionExists(name)).exists) return [];
      return client.retrieve(name, { ids: [...byPoint.keys()], with_payload: false, with_vector: false });
    });
    return new Set(found.flatMap(({ id }) => byPoint.get(String(id)) ?? []));
  }

  #keyOf(space: VectorSpace): string {
    return `${this.#collectionOf(space)} ${space.namespace}`;
  }

  #collectionOf({ dimensions }: VectorSpace): string {
    const { prefix, model } = this.#options;
    return `${prefix}-${sha256(model).slice(-12)}-${dimensions}`;
  }

  async #request<T>(work: (client: QdrantClient) => Promise<T>): Promise<T> {
    const { clock, url } = this.#options;
    const now = clock.monotonic();
    if (now < this.#pausedUntil) throw unavailable(url, 'it failed a moment ago', this.#pausedUntil - now);
    try {
      return await work(await (this.#client ??= this.#open()));
    } catch (error) {
      // A client has one key, and the key may have been rotated.
      this.#client = undefined;
      this.#known.forgetAll();
      this.#pausedUntil = clock.monotonic() + COOL_DOWN_MS;
      throw unavailable(url, printable(messageOf(error, 300), 300), COOL_DOWN_MS);
    }
  }

  async #open(): Promise<QdrantClient> {
    const { url, key, timeoutMs = TIMEOUT_MS } = this.#options;
    const { QdrantClient: Client } = await import('@qdrant/js-client-rest');
    const apiKey = await key();
    const { hostname, port, protocol, pathname } = new URL(url);
    const prefix = pathname.replace(/\/$/, '');
    return new Client({
      host: hostname,
      port: Number(port) || (protocol === 'https:' ? 443 : 80),
      https: protocol === 'https:',
      ...(prefix === '' ? {} : { prefix }),
      // Not `apiKey`: the client writes a warning to the console for one without TLS.
      ...(apiKey === undefined ? {} : { headers: { 'api-key': apiKey } }),
      timeout: timeoutMs,
      checkCompatibility: false,
    });
  }
}

/** The ID of the point of an entry: a UUID, as Qdrant demands. */
function pointOf({ namespace }: VectorSpace, id: string): string {
  const hex = createHash('sha256').update(`${namespace}/${id}`).digest('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join('-');
}

function hitsOf(points: readonly { id: unknown; score: number }[], asked: ReadonlyMap<string, string>): VectorHit[] {
  return points
    .flatMap(({ id: point, score }) => {
      const id = asked.get(String(point));
      return id !== undefined && Number.isFinite(score) ? [{ id, cosine: score }] : [];
    })
    .sort((a, b) => b.cosine - a.cosine || compareText(a.id, b.id));
}

function unavailable(url: string, reason: string, retry: number): TemperError {
  return new TemperError('TEMPER_VECTORS_UNAVAILABLE', `Qdrant at ${new URL(url).host} cannot be used: ${reason}`, {
    retry,
  });
}
