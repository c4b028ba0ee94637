import type { MemoryFinding, MemoryScan } from '../../agent/tools/memory-scan.ts';
import { TemperError } from '../../lib/errors.ts';
import type { JobOwner } from '../shares/caller-turns.ts';
import { ThreadPool, type ThreadPoolOptions } from '../threads/thread-pool.ts';
import { type PackedMemory, packMemory, scanPacked } from './packed-memory.ts';

/** So many bytes take about a millisecond, so they are searched without a thread. */
const MAX_BYTES_HERE = 16 * 1_024;
const RETRY_MS = 1_000;

export type ScanThreadsOptions = Omit<ThreadPoolOptions<PackedMemory, MemoryFinding[]>, 'noun' | 'runHere' | 'threads'>;

/**
 * Searches memories of agents outside the thread that serves requests. A search reads a whole memory, so this process makes one at a time:
 * a memory is read when it is the turn of its agent.
 */
export class ScanThreads implements AsyncDisposable {
  readonly #threads: ThreadPool<PackedMemory, MemoryFinding[]>;

  constructor(options: ScanThreadsOptions) {
    const runHere = (memory: PackedMemory) =>
      memory.bytes.byteLength <= MAX_BYTES_HERE ? scanPacked(memory) : undefined;
    this.#threads = new ThreadPool({ ...options, runHere, noun: 'searches of memory', threads: 1 });
  }

  /** The scan of one caller. It throws TEMPER_RATE_LIMITED, TEMPER_OVERLOADED, and TEMPER_CANCELLED when the signal aborts. */
  of(caller: JobOwner, signal: AbortSignal): MemoryScan {
    return async (query, read) => {
      const found = await this.#threads.run(caller, async () => packMemory(query, await read()), signal);
      if (typeof found !== 'string') return found;
      const problem = found === 'timeout' ? 'takes too long' : 'needs too much memory';
      throw new TemperError(
        'TEMPER_OVERLOADED',
        `a search of this memory ${problem}; delete keys that are not needed`,
        {
          retry: RETRY_MS,
        },
      );
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#threads[Symbol.asyncDispose]();
  }
}
