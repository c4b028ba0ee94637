import { parentPort } from 'node:worker_threads';
import type { Json } from '../../../lib/json.ts';
import { prepareReview } from './prepare-review.ts';

const READY = 'ready';

/** The program of a vetting thread: `ready` when it is loaded, then the vetting and the material of each artifact, which arrives as JSON text. */
parentPort?.on('message', (text: string) => {
  parentPort?.postMessage(prepareReview(JSON.parse(text) as Json));
});
parentPort?.postMessage(READY);
