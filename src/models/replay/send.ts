import type { ServerResponse } from 'node:http';
import type { Clock } from '../../lib/clock.ts';
import type { ReplayAnswer } from './script.ts';
import { frame, type FilledAnswer, type ReplayWire } from './wire.ts';

interface Delivery {
  clock: Clock;
  /** Aborted when the client is gone or the server closes. */
  signal: AbortSignal;
}

/** Writes an answer as the request asked for it, cut, delayed or broken off as the script says. */
export async function sendAnswer(
  response: ServerResponse,
  wire: ReplayWire,
  answer: ReplayAnswer,
  filled: FilledAnswer,
  stream: boolean,
  delivery: Delivery,
): Promise<void> {
  const type = stream ? 'text/event-stream' : 'application/json';
  const parts = stream ? wire.events(filled).map(frame) : [JSON.stringify(wire.whole(filled))];
  response.writeHead(200, { 'content-type': type });
  const cut = answer.cutAfterBytes ?? Number.POSITIVE_INFINITY;
  let sent = 0;
  for (const chunk of cutInto(parts, answer.chunkBytes)) {
    const allowed = chunk.subarray(0, Math.max(0, cut - sent));
    if (!(await written(response, allowed, delivery.signal))) return;
    sent += allowed.byteLength;
    // Broken off without the end of the chunked body: to the client the connection is lost.
    if (sent >= cut) return void response.socket?.destroy();
    if (answer.chunkDelayMilliseconds !== undefined)
      await delivery.clock.sleep(answer.chunkDelayMilliseconds, delivery.signal);
  }
  response.end();
}

/** Pieces of the given size, or one piece an event. */
function cutInto(parts: string[], size: number | undefined): Buffer[] {
  if (size === undefined) return parts.map((part) => Buffer.from(part));
  const whole = Buffer.from(parts.join(''));
  const chunks: Buffer[] = [];
  for (let start = 0; start < whole.byteLength; start += size) chunks.push(whole.subarray(start, start + size));
  return chunks;
}

/** False when the client went away. */
async function written(response: ServerResponse, chunk: Buffer, signal: AbortSignal): Promise<boolean> {
  if (response.destroyed || signal.aborted) return false;
  await new Promise<void>((resolve) => {
    response.write(chunk, () => resolve());
  });
  return !response.destroyed;
}
