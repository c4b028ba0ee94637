import type { Socket } from 'node:net';
import { poll } from './poll.ts';
import type { JsonObject } from '../../src/lib/json.ts';
import { FrameReader } from '../../src/sandbox/protocol.ts';

/** A frame of the socket between the containers of a pod, of a value or of text that need not be JSON. */
export function framed(value: unknown): Buffer {
  const text = Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));
  const length = Buffer.alloc(4);
  length.writeUInt32BE(text.length);
  return Buffer.concat([length, text]);
}

/** One side of that socket, which sends the frames that a test gives it. */
export class FramePeer {
  readonly frames: JsonObject[] = [];
  readonly closed: Promise<unknown>;
  readonly #socket: Socket;
  readonly #reader = new FrameReader(Number.MAX_SAFE_INTEGER);

  constructor(socket: Socket, ...frames: object[]) {
    this.#socket = socket.on('error', () => undefined).on('data', (chunk: Buffer) => this.#onData(chunk));
    this.closed = new Promise((resolve) => socket.once('close', resolve));
    for (const frame of frames) this.send(frame);
  }

  send(frame: object): void {
    this.#socket.write(framed(frame));
  }

  /** Waits for a frame of this type. */
  async got(type: string): Promise<JsonObject> {
    const find = (): JsonObject | undefined => this.frames.find((frame) => frame['type'] === type);
    await poll(`a frame ${type}`, () => find() !== undefined);
    return find() ?? {};
  }

  end(): void {
    this.#socket.destroy();
  }

  #onData(chunk: Buffer): void {
    for (const text of this.#reader.push(chunk) ?? []) this.frames.push(JSON.parse(text) as JsonObject);
  }
}
