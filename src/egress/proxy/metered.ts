import { Transform } from 'node:stream';
import type { Direction, OpenConnection } from './open-connection.ts';

/** Passes bytes on as soon as the connection permits. */
export function metered(connection: OpenConnection, direction: Direction): Transform {
  return new Transform({
    transform(chunk: Buffer, _encoding, pass) {
      const held = connection.count(direction, chunk.length);
      if (held === undefined) pass(null, chunk);
      else void held.then(() => pass(null, chunk));
    },
  });
}
