/** Parsers for the frames about agent programs, which are untrusted. Each returns undefined for an invalid value. */
import { isCount, type JsonObject } from '../../lib/json.ts';

/** `program`: standard input and output. `requests`: the pipe of its requests. */
export type ProgramStream = 'program' | 'requests';

/** Characters for a stream. */
export interface StreamText {
  stream: ProgramStream;
  text: string;
}

/** Characters of a stream that the reader has taken. */
export interface StreamTaken {
  stream: ProgramStream;
  characters: number;
}

export interface ProgramExit {
  reason: string;
  /** The beginning of its standard error. */
  stderr: string;
}

const MAX_REASON = 512;
const MAX_STDERR = 2_048;

export function parseStreamText({ stream, text }: JsonObject): StreamText | undefined {
  return isStream(stream) && typeof text === 'string' ? { stream, text } : undefined;
}

export function parseStreamTaken({ stream, characters }: JsonObject): StreamTaken | undefined {
  return isStream(stream) && isCount(characters) ? { stream, characters } : undefined;
}

export function parseProgramExit({ reason, stderr }: JsonObject): ProgramExit | undefined {
  if (typeof reason !== 'string' || typeof stderr !== 'string') return undefined;
  return { reason: reason.slice(0, MAX_REASON), stderr: stderr.slice(0, MAX_STDERR) };
}

function isStream(value: unknown): value is ProgramStream {
  return value === 'program' || value === 'requests';
}
