import type { Inspector } from '../support/inspector.ts';
import type { ServerProcess } from '../support/server-process.ts';

/** The work of a process's main thread in a period. */
export interface EventLoopReport {
  /** Processor seconds of the main thread. */
  readonly seconds: number;
  /** The most processor time, in milliseconds, between two turns of the event loop. */
  readonly longestMs: number;
  /** The longest time between two turns by the clock, waits for a processor included. */
  readonly longestWallMs: number;
}

/** A timer of a millisecond runs once in each turn. */
const START = `(() => {
  const used = () => { const { user, system } = process.threadCpuUsage(); return (user + system) / 1e3; };
  const loop = { first: used(), last: used(), at: performance.now(), longestMs: 0, longestWallMs: 0 };
  const turn = () => {
    const [now, at] = [used(), performance.now()];
    loop.longestMs = Math.max(loop.longestMs, now - loop.last);
    loop.longestWallMs = Math.max(loop.longestWallMs, at - loop.at);
    [loop.last, loop.at] = [now, at];
  };
  const timer = setInterval(turn, 1);
  loop.end = () => { clearInterval(timer); turn(); return { ...loop, seconds: (used() - loop.first) / 1e3 }; };
  globalThis.benchLoop = loop;
})()`;
const END = `(() => {
  const { seconds, longestMs, longestWallMs } = globalThis.benchLoop.end();
  return { seconds, longestMs, longestWallMs };
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
