import { PassThrough } from 'node:stream';
import { drained } from '../../../lib/async/drained.ts';
import type { Logger } from '../../../telemetry/log.ts';

/** Interval of keep-alive texts, so that no proxy closes a quiet stream. */
const KEEP_ALIVE_MS = 15_000;

interface TextStreamOptions {
  /** Written while nothing else is. */
  keepAlive: string;
  signal: AbortSignal;
  log: Logger;
}

/** The body of a response that ends with its parts, or when the signal aborts. Writes with backpressure. */
export function textStream(parts: AsyncIterable<string>, { keepAlive, signal, log }: TextStreamOptions): PassThrough {
  const stream = new PassThrough();
  const timer = setInterval(() => stream.write(keepAlive), KEEP_ALIVE_MS);
  const write = async (): Promise<void> => {
    for await (const part of parts) {
      if (stream.destroyed || signal.aborted) return;
      if (!stream.write(part)) await drained(stream);
    }
  };
  void write()
    .then(
      () => stream.end(),
      (error: unknown) => {
        log.warn({ error }, 'a stream of events ended early');
        stream.destroy();
      },
    )
    .finally(() => clearInterval(timer));
  return stream;
}
