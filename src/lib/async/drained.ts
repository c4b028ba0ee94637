import type { Writable } from 'node:stream';

/** Resolves when the stream accepts data again or has closed. Call after `write` has returned false. */
export function drained(stream: Writable): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      stream.off('drain', done).off('close', done);
      resolve();
    };
    if (stream.closed) done();
    else stream.on('drain', done).on('close', done);
  });
}
