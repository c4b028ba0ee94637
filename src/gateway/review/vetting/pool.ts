import { LRUCache } from 'lru-cache';
import { MAX_SIZES } from '../../../forge/request.ts';
import type { ArtifactVetting } from '../../../forge/static-gates.ts';
import { sha256 } from '../../../lib/canonical.ts';
import type { Json } from '../../../lib/json.ts';
import type { JobOwner } from '../../shares/caller-turns.ts';
import { ThreadPool, type ThreadPoolOptions } from '../../threads/thread-pool.ts';

/** Vets artifacts of agents, and builds what the judge reads of them, outside the thread that serves requests. */
export interface ArtifactVetter {
  /** Throws TEMPER_RATE_LIMITED, TEMPER_OVERLOADED, and TEMPER_CANCELLED when the signal aborts. */
  vet(caller: JobOwner, artifact: Json, signal: AbortSignal): Promise<ArtifactVetting>;
}

export type VettingPoolOptions = Omit<ThreadPoolOptions<string, ArtifactVetting>, 'noun' | 'runHere'>;

const CACHED_RESULTS = 500;
/** Material for a judge has up to 128,000 characters. */
const MAX_CACHED_CHARACTERS = 16 * 1_024 * 1_024;
/** Counts for a result without material: its violations. */
const RESULT_CHARACTERS = 4_096;

/** Vets in a pool of threads, one artifact of an agent at a time. Results are cached by the digest of the artifact. */
export class VettingPool implements ArtifactVetter, AsyncDisposable {
  readonly #threads: ThreadPool<string, ArtifactVetting>;
  readonly #results = new LRUCache<string, ArtifactVetting>({
    max: CACHED_RESULTS,
    maxSize: MAX_CACHED_CHARACTERS,
    sizeCalculation: charactersOf,
  });

  constructor(options: VettingPoolOptions) {
    this.#threads = new ThreadPool({ ...options, noun: 'reviews' });
  }

  async vet(caller: JobOwner, artifact: Json, signal: AbortSignal): Promise<ArtifactVetting> {
    const text = JSON.stringify(artifact);
    if (text.length > MAX_SIZES.artifact) return refusal(`has more than ${MAX_SIZES.artifact} characters`);
    const digest = sha256(text);
    const known = this.#results.get(digest);
    if (known !== undefined) return known;
    const result = await this.#threads.run(caller, async () => text, signal);
    if (result === 'timeout') return refusal('takes too long to check');
    if (result === 'failed') return refusal('takes too much memory to check');
    this.#results.set(digest, result);
    return result;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#threads[Symbol.asyncDispose]();
  }
}

function charactersOf({ material }: ArtifactVetting): number {
  return RESULT_CHARACTERS + (material?.ok === true ? material.text.length : 0);
}

/** Fails closed: a tool that cannot be checked is refused. */
function refusal(problem: string): ArtifactVetting {
  const message = `the tool ${problem}; make its source, schemas and tests smaller`;
  return { shape: [{ code: 'TEMPER_FORGE_SHAPE', message }], code: { violations: [], warnings: [] }, schemas: [] };
}
