import { parentPort } from 'node:worker_threads';
import { vetArtifact } from '../../../forge/static-gates.ts';
import type { Json } from '../../../lib/json.ts';

const READY = 'ready';

/** The program of a vetting thread: `ready` when it is loaded, then the vetting of each artifact, which arrives as JSON text. */
parentPort?.on('message', (text: string) => {
  parentPort?.postMessage(vetArtifact(JSON.parse(text) as Json));
});
parentPort?.postMessage(READY);
