import { MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads';

const TIMEOUT_MS = 5_000;
const MAX_HEAP_MIB = 64;

/**
 * The parser that removes types is WebAssembly with a stack of its own: a source that is nested deeply breaks the instance, and
 * Node has one per thread. A thread of its own per source keeps the instance of this process whole.
 */
const WORKER = `
const { workerData } = require('node:worker_threads');
const { stripTypeScriptTypes } = require('node:module');
process.emitWarning = () => {};
let code;
try { code = stripTypeScriptTypes(workerData.source, { mode: 'strip' }); } catch {}
workerData.port.postMessage({ code });
Atomics.store(workerData.done, 0, 1);
Atomics.notify(workerData.done, 0);
`;

/**
 * Replaces TypeScript types by blanks, so that every line and column stays. Undefined when the source is not TypeScript or
 * needs more than the removal of types (enums, namespaces, parameter properties).
 */
export function stripTypes(source: string): string | undefined {
  const { port1, port2 } = new MessageChannel();
  const done = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(WORKER, {
    eval: true,
    workerData: { port: port2, done, source },
    transferList: [port2],
    resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MIB },
  });
  // A worker that fails sends no code, which is the answer.
  worker.on('error', () => undefined);
  worker.unref();
  Atomics.wait(done, 0, 0, TIMEOUT_MS);
  const answer = receiveMessageOnPort(port1)?.message as { code?: string } | undefined;
  port1.close();
  void worker.terminate();
  return answer?.code;
}
