import { Worker, type WorkerOptions } from 'node:worker_threads';

/** Starts a thread with the program of `worker.ts`. A bundle contains another version of this file, which names that program. */
export function startScanThread(options: WorkerOptions): Worker {
  return new Worker(new URL('./worker.ts', import.meta.url), options);
}
