/** One connection between the containers of a pod: frames of a 4-byte big-endian length and that many bytes of JSON. */
import type { Socket } from 'node:net';
import { type Json, parseUntrustedJson } from '../../lib/json.ts';
import { FrameReader } from '../../sandbox/protocol.ts';

/** Largest frame: the largest input of a job, its source, and what stands around them. */
export const FRAME_BYTES = 25_165_824;
/** What may wait to be written before the other side counts as gone. */
const UNREAD_BYTES = 4 * FRAME_BYTES;
/** A frame that has begun must be whole within so many milliseconds. */
const FRAME_MILLISECONDS = 30_000;

export interface ChannelListener {
  /** False when this is no frame of the protocol: the connection ends. */
  frame(frame: Json, bytes: number): boolean;
  /** Once, and last. */
  gone(reason: string): void;
}

/** Neither side believes the other: what is too large, too slow, unread or malformed ends the connection. */
export class Channel {
  readonly #socket: Socket;
  readonly #listener: ChannelListener;
  readonly #reader = new FrameReader(FRAME_BYTES);
  readonly #frameMilliseconds: number;
  #patience: NodeJS.Timeout | undefined;
  #gone = false;

  constructor(socket: Socket, listener: ChannelListener, frameMilliseconds = FRAME_MILLISECONDS) {
    this.#socket = socket;
    this.#listener = listener;
    this.#frameMilliseconds = frameMilliseconds;
    socket.on('data', (chunk: Buffer) => this.#hear(chunk));
    socket.on('error', () => this.close('the connection failed'));
    socket.on('close', () => this.close('the other side is gone'));
  }

  get open(): boolean {
    return !this.#gone;
  }

  /** False when the frame is too large to be sent; nothing is sent then. */
  send(frame: object): boolean {
    const text = JSON.stringify(frame);
    const length = Buffer.byteLength(text);
    if (length > FRAME_BYTES) return false;
    if (this.#gone) return true;
    const bytes = Buffer.allocUnsafe(4 + length);
    bytes.writeUInt32BE(length, 0);
    bytes.write(text, 4);
    this.#socket.write(bytes);
    if (this.#socket.writableLength > UNREAD_BYTES) this.close('the other side reads nothing');
    return true;
  }

  close(reason: string): void {
    if (this.#gone) return;
    this.#gone = true;
    clearTimeout(this.#patience);
    this.#socket.destroy();
    this.#listener.gone(reason);
  }

  #hear(chunk: Buffer): void {
    if (this.#gone) return;
    const texts = this.#reader.push(chunk);
    if (texts === undefined) {
      this.close('the other side sent more than it may');
      return;
    }
    for (const text of texts) {
      if (!this.#take(text)) {
        this.close('the other side broke the protocol');
        return;
      }
      if (this.#gone) return;
    }
    this.#watch(texts.length > 0);
  }

  #take(text: string): boolean {
    let frame: Json;
    try {
      frame = parseUntrustedJson(text);
    } catch {
      // Not JSON, or nested so deeply that reading it fails.
      return false;
    }
    return this.#listener.frame(frame, Buffer.byteLength(text));
  }

  #watch(progressed: boolean): void {
    if (progressed || !this.#reader.pending) {
      clearTimeout(this.#patience);
      this.#patience = undefined;
    }
    if (!this.#reader.pending) return;
    this.#patience ??= setTimeout(
      () => this.close('the other side did not finish what it began to send'),
      this.#frameMilliseconds,
    );
  }
}
