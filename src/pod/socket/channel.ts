/** One connection between the containers of a pod. A frame is a 4-byte big-endian length, followed by that many bytes of JSON. */
import type { Socket } from 'node:net';
import { type Json, parseUntrustedJson } from '../../lib/json.ts';
import { FrameReader } from '../../sandbox/protocol.ts';

/** Largest frame: the largest input of a job, its source, and the rest of the frame. */
export const MAX_FRAME_BYTES = 25_165_824;
/** Unsent bytes at which the peer counts as dead. */
const MAX_UNREAD_BYTES = 4 * MAX_FRAME_BYTES;
/** A frame must arrive completely within this time after its first byte. */
const FRAME_TIMEOUT_MS = 30_000;

export interface ChannelListener {
  /** False when this is not a valid frame: the connection is closed. */
  onFrame(frame: Json, bytes: number): boolean;
  /** Called exactly once, as the last call. */
  onClosed(reason: string): void;
}

/** Neither side trusts the other: a frame that is too large, too slow or malformed, or a peer that does not read, closes the connection. */
export class Channel {
  readonly #socket: Socket;
  readonly #listener: ChannelListener;
  readonly #reader = new FrameReader(MAX_FRAME_BYTES);
  readonly #frameTimeoutMs: number;
  #frameTimer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(socket: Socket, listener: ChannelListener, frameTimeoutMs = FRAME_TIMEOUT_MS) {
    this.#socket = socket;
    this.#listener = listener;
    this.#frameTimeoutMs = frameTimeoutMs;
    socket.on('data', (chunk: Buffer) => this.#onData(chunk));
    socket.on('error', () => this.close('the connection failed'));
    socket.on('close', () => this.close('the peer closed the connection'));
  }

  get isOpen(): boolean {
    return !this.#closed;
  }

  /** False when the frame is too large to be sent; nothing is sent then. */
  send(frame: object): boolean {
    const text = JSON.stringify(frame);
    const length = Buffer.byteLength(text);
    if (length > MAX_FRAME_BYTES) return false;
    if (this.#closed) return true;
    const bytes = Buffer.allocUnsafe(4 + length);
    bytes.writeUInt32BE(length, 0);
    bytes.write(text, 4);
    this.#socket.write(bytes);
    if (this.#socket.writableLength > MAX_UNREAD_BYTES) this.close('the peer does not read');
    return true;
  }

  close(reason: string): void {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#frameTimer);
    this.#socket.destroy();
    this.#listener.onClosed(reason);
  }

  #onData(chunk: Buffer): void {
    if (this.#closed) return;
    const texts = this.#reader.push(chunk);
    if (texts === undefined) {
      this.close('the peer sent a frame that is too large');
      return;
    }
    for (const text of texts) {
      if (!this.#onFrame(text)) {
        this.close('the peer sent an invalid frame');
        return;
      }
      if (this.#closed) return;
    }
    this.#updateFrameTimer(texts.length > 0);
  }

  #onFrame(text: string): boolean {
    let frame: Json;
    try {
      frame = parseUntrustedJson(text);
    } catch {
      // Not JSON, or nested too deeply to parse.
      return false;
    }
    return this.#listener.onFrame(frame, Buffer.byteLength(text));
  }

  #updateFrameTimer(progressed: boolean): void {
    if (progressed || !this.#reader.pending) {
      clearTimeout(this.#frameTimer);
      this.#frameTimer = undefined;
    }
    if (!this.#reader.pending) return;
    this.#frameTimer ??= setTimeout(() => this.close('the peer did not finish a frame in time'), this.#frameTimeoutMs);
  }
}
