import type { Socket } from 'node:net';
import { poll } from './poll.ts';
import type { JsonObject } from '../../src/lib/json.ts';

const LENGTH_BYTES = 4;

/** A frame of the socket between the containers of a pod, of a value or of text that need not be JSON. */
export function framed(value: unknown): Buffer {
  const text = Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32BE(text.length);
  return Buffer.concat([length, text]);
}

/** One side of that socket, which sends the frames that a test gives it. */
export class FramePeer {
  readonly frames: JsonObject[] = [];
  readonly closed: Promise<unknown>;
  readonly #socket: Socket;
  #received: Buffer = Buffer.alloc(0);

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
    this.#received = Buffer.concat([this.#received, chunk]);
    for (let text = this.#next(); text !== undefined; text = this.#next()) {
      this.frames.push(JSON.parse(text) as JsonObject);
    }
  }

  #next(): string | undefined {
    if (this.#received.length < LENGTH_BYTES) return undefined;
    const end = LENGTH_BYTES + this.#received.readUInt32BE(0);
    if (this.#received.length < end) return undefined;
    const text = this.#received.subarray(LENGTH_BYTES, end).toString();
    this.#received = this.#received.subarray(end);
    return text;
  }
}
