import { parentPort } from 'node:worker_threads';
import { systemClock } from '../../../src/lib/clock.ts';
import { startReplay } from '../../../src/models/replay/server.ts';
import { SCRIPT } from '../../../test/support/gateway/neighbours/models.ts';

/** Serves the models of all agents until the first message of its parent, in an event loop of its own. */
const server = await startReplay({ script: SCRIPT, clock: systemClock });
parentPort?.postMessage(server.url);
await new Promise((resolve) => parentPort?.once('message', resolve));
await server[Symbol.asyncDispose]();
