import { parentPort } from 'node:worker_threads';
import { type PackedMemory, scanPacked } from './packed-memory.ts';

const READY = 'ready';

/** The program of a thread that searches memories: `ready` when it is loaded, then the entries that it finds in each memory. */
parentPort?.on('message', (memory: PackedMemory) => {
  parentPort?.postMessage(scanPacked(memory));
});
parentPort?.postMessage(READY);
