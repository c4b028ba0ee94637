/**
 * The protocol between supervisor and runner over the runner's standard input and output. A frame is a 4-byte big-endian
 * length followed by that many bytes of JSON. Values of guest code travel as JSON text inside a string, so that neither
 * side parses them into objects by accident. Both sides treat received data as untrusted.
 *
 *   supervisor                      runner
 *     program frame   ------------>   (once)
 *                     <------------  hello (versions), ready
 *     run             ------------>
 *                     <------------  call      0 or more times
 *     answer          ------------>           one per call
 *                     <------------  done, ready
 *
 * Sessions have further frames: session/frames.ts.
 */
import { isCount, isJsonObject, type Json } from '../lib/json.ts';
import type { ToolApi } from '../api/v1alpha1/common.ts';
import { type ForwardedApi, isForwardedApi, isRunnerFailure, type RunnerFailure } from './port.ts';
import { type ExecuteFrame, type OpenFrame, parseSessionFrame, type SessionFrame } from './session/frames.ts';

/** Largest source, as UTF-8. */
export const MAX_SOURCE_BYTES = 1_048_576;
/** Largest input, as JSON text in UTF-8. */
export const MAX_INPUT_BYTES = 16_777_216;
/** Deepest nesting of an input or an output. */
export const MAX_DEPTH = 256;
/** Longest message of a failure, in characters. */
export const MAX_MESSAGE = 4_096;
/** Bytes that a frame may need beyond the guest's own data. */
export const FRAME_OVERHEAD_BYTES = 65_536;
/** JSON text contains no raw control characters, so encoding it as a JSON string at most doubles its length. */
export const ESCAPE_FACTOR = 2;

/** The first frame, sent once: the program of the runner and the file of its engine. */
export interface ProgramFrame {
  program: string;
  engine: string;
}

export interface RunFrame {
  type: 'run';
  job: number;
  source: string;
  /** JSON text. */
  input: string;
  apis: readonly ToolApi[];
  durationMilliseconds: number;
  memoryBytes: number;
  outputBytes: number;
  hostCalls: number;
  hostBytes: number;
  startTime: number;
  seed: string;
}

/** May arrive at the runner after its job has ended, because both sides send concurrently. */
export type AnswerFrame = {
  type: 'answer';
  job: number;
  call: number /** Milliseconds since 1970. */;
  time: number;
} & ({ ok: true /** JSON text. */; value: string } | { ok: false; code: string; message: string });

interface RunnerUsage {
  milliseconds: number;
  heapBytes: number;
  hostCalls: number;
}

export type RunnerFrame =
  | { type: 'hello'; runtime: string; engine: string }
  /** The next environment is prepared; the runner accepts a job. */
  | { type: 'ready' }
  | { type: 'call'; job: number; call: number; api: ForwardedApi; input: string }
  | { type: 'done'; job: number; ok: true; output: string; usage: RunnerUsage }
  | { type: 'done'; job: number; ok: false; code: RunnerFailure; message: string; usage: RunnerUsage }
  | SessionFrame;

/** The frames of the supervisor after the first one. */
export type SupervisorFrame = RunFrame | AnswerFrame | OpenFrame | ExecuteFrame;

export function encodeFrame(frame: ProgramFrame | SupervisorFrame): Buffer {
  const text = JSON.stringify(frame);
  const length = Buffer.byteLength(text);
  const bytes = Buffer.allocUnsafe(4 + length);
  bytes.writeUInt32BE(length, 0);
  bytes.write(text, 4);
  return bytes;
}

/** Parses a frame of a runner. Undefined for anything that is not a valid frame. */
export function parseRunnerFrame(text: string): RunnerFrame | undefined {
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
  if (!isJsonObject(value)) return undefined;
  const { type } = value;
  switch (typeof type === 'string' ? type : '') {
    case 'hello':
      return parseHello(value);
    case 'ready':
      return { type: 'ready' };
    case 'call':
      return parseCall(value);
    case 'done':
      return parseDone(value);
    default:
      return parseSessionFrame(value);
  }
}

type Fields = { [key: string]: Json };

function parseHello({ runtime, engine }: Fields): RunnerFrame | undefined {
  if (typeof runtime !== 'string' || typeof engine !== 'string') return undefined;
  return { type: 'hello', runtime: runtime.slice(0, 64), engine: engine.slice(0, 64) };
}

function parseCall(value: Fields): RunnerFrame | undefined {
  const { job, call, api, input } = value;
  if (!isCount(job) || !isCount(call) || typeof input !== 'string') return undefined;
  if (!isForwardedApi(api)) return undefined;
  return { type: 'call', job, call, api, input };
}

function parseDone(value: Fields): RunnerFrame | undefined {
  const { job, ok, output, code, message } = value;
  const usage = parseUsage(value['usage']);
  if (!isCount(job) || usage === undefined) return undefined;
  if (ok === true) return typeof output === 'string' ? { type: 'done', job, ok, output, usage } : undefined;
  if (!isRunnerFailure(code) || typeof message !== 'string') return undefined;
  return { type: 'done', job, ok: false, code, message, usage };
}

function parseUsage(value: Json | undefined): RunnerUsage | undefined {
  if (!isJsonObject(value)) return undefined;
  const { milliseconds, heapBytes, hostCalls } = value;
  if (typeof milliseconds !== 'number' || milliseconds < 0 || !isCount(heapBytes) || !isCount(hostCalls)) {
    return undefined;
  }
  return { milliseconds, heapBytes, hostCalls };
}

/** Cuts a byte stream into frames. Memory is bounded by the limit of one frame plus one chunk. */
export class FrameReader {
  #chunks: Buffer[] = [];
  #buffered = 0;
  #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Sets the largest size of the next frames, in bytes. */
  set limit(bytes: number) {
    this.#limit = bytes;
  }

  /** Whether part of a frame has been received. */
  get pending(): boolean {
    return this.#buffered > 0;
  }

  /** The frames that `chunk` completes; undefined when one announces more than the limit. */
  push(chunk: Buffer): string[] | undefined {
    this.#chunks.push(chunk);
    this.#buffered += chunk.length;
    const frames: string[] = [];
    while (this.#buffered >= 4) {
      const length = this.#announcedLength();
      if (length > this.#limit) return undefined;
      if (this.#buffered < 4 + length) break;
      const bytes = this.#joined();
      frames.push(bytes.toString('utf8', 4, 4 + length));
      this.#chunks = [bytes.subarray(4 + length)];
      this.#buffered -= 4 + length;
    }
    return frames;
  }

  #announcedLength(): number {
    const first = this.#chunks[0];
    return (first !== undefined && first.length >= 4 ? first : this.#joined()).readUInt32BE(0);
  }

  #joined(): Buffer {
    const [first] = this.#chunks;
    if (this.#chunks.length === 1 && first !== undefined) return first;
    const bytes = Buffer.concat(this.#chunks);
    this.#chunks = [bytes];
    return bytes;
  }
}
