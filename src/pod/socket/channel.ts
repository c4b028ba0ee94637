/** One connection between the containers of a pod. A frame is a 4-byte big-endian length, followed by that many bytes of JSON. */
import type { Socket } from 'node:net';
import { type Json, jsonExcess, parseUntrustedJson } from '../../lib/json.ts';
import { FrameReader } from '../../sandbox/protocol.ts';

/** Largest frame: the largest input of a job, its source, and the rest of the frame. */
const MAX_FRAME_BYTES = 25_165_824;
/** Unsent bytes at which the peer counts as dead. */
const MAX_UNREAD_BYTES = 4 * MAX_FRAME_BYTES;
/** A frame must arrive completely within this time after its first byte. */
const FRAME_TIMEOUT_MS = 30_000;

/** Limits of the frames that a channel accepts. */
export interface FrameLimits {
  bytes: number;
  /** Values of one frame, counted before it is parsed: one byte of JSON can cost fifty bytes of memory. */
  values: number;
}

/** Frames of the agent container, which limits what it sends. */
export const AGENT_FRAMES: FrameLimits = { bytes: MAX_FRAME_BYTES, values: Number.MAX_SAFE_INTEGER };
/** Frames of the sandbox container: the largest is text of a file of 1 MiB with each character escaped, the fullest a result of 1 MiB. */
export const SANDBOX_FRAMES: FrameLimits = { bytes: 8_388_608, values: 550_000 };

export interface ChannelOptions {
  accepts: FrameLimits;
  /** What the peer accepts; further frames are not sent. */
  sends: FrameLimits;
  frameTimeoutMs?: number;
}

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
  readonly #reader: FrameReader;
  readonly #accepts: FrameLimits;
  readonly #sends: FrameLimits;
  readonly #frameTimeoutMs: number;
  #frameTimer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(socket: Socket, listener: ChannelListener, options: ChannelOptions) {
    const { accepts, sends, frameTimeoutMs = FRAME_TIMEOUT_MS } = options;
    this.#accepts = accepts;
    this.#sends = sends;
    this.#reader = new FrameReader(accepts.bytes);
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

  /** False when the frame is more than the peer accepts; nothing is sent then. */
  send(frame: object): boolean {
    const text = JSON.stringify(frame);
    const length = Buffer.byteLength(text);
    if (length > this.#sends.bytes || exceeds(text, this.#sends)) return false;
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
    if (exceeds(text, this.#accepts)) return false;
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

/** The parser refuses what is nested too deeply for its stack. */
function exceeds(text: string, { values }: FrameLimits): boolean {
  return text.length > values && jsonExcess(text, { values, depth: text.length }) !== undefined;
}
