import { SingleFlight } from '../../lib/async/single-flight.ts';
import type { Clock } from '../../lib/clock.ts';
import { COUNTED_STORES, type CountedStore, noBytes, type StoredBytes } from './resident.ts';
import type { Residents, StoredResident } from './residents.ts';

interface Sums {
  bytes: StoredBytes;
  readAt: number;
}

const TTL_MS = 60_000;

/** Bytes of all agents of a namespace, from their entries. Read once a minute per namespace that stores something. */
export class NamespaceBytes {
  readonly #residents: Pick<Residents, 'list'>;
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #sums = new Map<string, Sums>();
  readonly #reads = new SingleFlight<Sums>();
  readonly #recounted = new Map<string, number>();

  constructor(residents: Pick<Residents, 'list'>, clock: Pick<Clock, 'monotonic'>) {
    this.#residents = residents;
    this.#clock = clock;
  }

  async bytes(namespace: string, store: CountedStore): Promise<number> {
    return (await this.#current(namespace)).bytes[store];
  }

  /** The agents with the most bytes; none when they were asked for within the last minute. */
  async largest(namespace: string, store: CountedStore, count: number): Promise<StoredResident[]> {
    const now = this.#clock.monotonic();
    const key = `${store}/${namespace}`;
    if (now - (this.#recounted.get(key) ?? Number.NEGATIVE_INFINITY) < TTL_MS) return [];
    this.#recounted.set(key, now);
    let found: StoredResident[] = [];
    for await (const entry of this.#residents.list(namespace)) {
      found.push(entry);
      if (found.length >= 10 * count) found = top(found, store, count);
    }
    return top(found, store, count);
  }

  add(namespace: string, store: CountedStore, bytes: number): void {
    const sums = this.#sums.get(namespace);
    if (sums !== undefined) sums.bytes[store] = Math.max(0, sums.bytes[store] + bytes);
  }

  async #current(namespace: string): Promise<Sums> {
    const known = this.#sums.get(namespace);
    if (known !== undefined && this.#clock.monotonic() - known.readAt < TTL_MS) return known;
    return this.#reads.run(namespace, () => this.#read(namespace));
  }

  async #read(namespace: string): Promise<Sums> {
    const readAt = this.#clock.monotonic();
    const bytes = noBytes();
    for await (const { resident } of this.#residents.list(namespace)) {
      for (const store of COUNTED_STORES) bytes[store] += resident.bytes[store];
    }
    const sums = { bytes, readAt };
    this.#sums.set(namespace, sums);
    return sums;
  }
}

function top(found: StoredResident[], store: CountedStore, count: number): StoredResident[] {
  return found.sort((a, b) => b.resident.bytes[store] - a.resident.bytes[store]).slice(0, count);
}
