import type { Inspector } from '../support/inspector.ts';
import type { ServerProcess } from '../support/server-process.ts';

/** The work of a process's main thread in a period. */
export interface EventLoopReport {
  /** Processor seconds of the main thread. */
  readonly seconds: number;
  /** The longest time, in milliseconds, in which the event loop served nothing else, waits for the processor included. */
  readonly longestMs: number;
}

const START = `(() => {
  const { monitorEventLoopDelay } = process.getBuiltinModule('node:perf_hooks');
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  globalThis.benchLoop = { delay, cpu: process.threadCpuUsage() };
})()`;
const END = `(() => {
  const { delay, cpu } = globalThis.benchLoop;
  const { user, system } = process.threadCpuUsage(cpu);
  delay.disable();
  return { seconds: (user + system) / 1e6, longestMs: delay.max / 1e6 };
})()`;

/** Starts to measure the event loop of a server; call the result to get the report. */
export async function measureEventLoop(server: ServerProcess): Promise<() => Promise<EventLoopReport>> {
  const inspector: Inspector = await server.inspector();
  await inspector.evaluate(START);
  return async () => {
    const report = await inspector.evaluate<EventLoopReport>(END);
    await inspector[Symbol.asyncDispose]();
    return report;
  };
}
