import type { ServerResponse } from 'node:http';
import type { Clock } from '../../lib/clock.ts';
import type { ReplayAnswer } from './script/script.ts';
import { formatServerEvent, type FilledAnswer, type ReplayWireFormat } from './wire/wire.ts';

interface SendContext {
  clock: Clock;
  /** Aborted when the client disconnects or the server closes. */
  signal: AbortSignal;
}

/** Writes an answer in the requested form, streamed or not; truncates, delays or aborts it as the script specifies. */
export async function sendAnswer(
  response: ServerResponse,
  wire: ReplayWireFormat,
  answer: ReplayAnswer,
  filled: FilledAnswer,
  stream: boolean,
  delivery: SendContext,
): Promise<void> {
  const type = stream ? 'text/event-stream' : 'application/json';
  const parts = stream ? wire.events(filled).map(formatServerEvent) : [JSON.stringify(wire.body(filled))];
  response.writeHead(200, { 'content-type': type });
  const cutAfter = answer.cutAfterBytes ?? Number.POSITIVE_INFINITY;
  let sent = 0;
  for (const chunk of chunksOf(parts, answer.chunkBytes)) {
    const allowed = chunk.subarray(0, Math.max(0, cutAfter - sent));
    if (!(await written(response, allowed, delivery.signal))) return;
    sent += allowed.byteLength;
    // Destroyed before the end of the chunked body: the client sees a lost connection.
    if (sent >= cutAfter) return void response.socket?.destroy();
    if (answer.chunkDelayMilliseconds !== undefined)
      await delivery.clock.sleep(answer.chunkDelayMilliseconds, delivery.signal);
  }
  response.end();
}

/** Chunks of the given size, or one chunk per event. */
function chunksOf(parts: string[], size: number | undefined): Buffer[] {
  if (size === undefined) return parts.map((part) => Buffer.from(part));
  const whole = Buffer.from(parts.join(''));
  const chunks: Buffer[] = [];
  for (let start = 0; start < whole.byteLength; start += size) chunks.push(whole.subarray(start, start + size));
  return chunks;
}

/** Writes a chunk; false when the client has disconnected. */
async function written(response: ServerResponse, chunk: Buffer, signal: AbortSignal): Promise<boolean> {
  if (response.destroyed || signal.aborted) return false;
  await new Promise<void>((resolve) => {
    response.write(chunk, () => resolve());
  });
  return !response.destroyed;
}
