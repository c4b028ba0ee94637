import { TemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import type { ResolvedModel } from '../pipeline.ts';
import type { ModelInput } from '../port.ts';

/** The size of a text for a tokenizer. A token has at least one byte, so `bytes` is an upper bound of the tokens. */
export interface TextSize {
  /** In UTF-8. */
  bytes: number;
  /** Estimated tokens. */
  tokens: number;
  /** A lower bound of the tokens. */
  minTokens: number;
}

/** Weights in thirds of a token, so that sums are exact. */
const PLAIN = 1;
const UPPER_CASE = 2;
const PER_NON_ASCII_BYTE = 2;
const OTHER = 3;
const THIRDS_OF_A_TOKEN = 3;

/** The weight of each byte: a table, because a request may have megabytes. */
const WEIGHTS = Uint8Array.from({ length: 256 }, (_, byte) => {
  if (byte >= 0x80) return PER_NON_ASCII_BYTE;
  const isLowerCase = byte >= 0x61 && byte <= 0x7a;
  if (isLowerCase || byte === 0x20) return PLAIN;
  return byte >= 0x41 && byte <= 0x5a ? UPPER_CASE : OTHER;
});

/**
 * Texts of more bytes per token consist of runs of one character, such as blanks or dashes; prose and code have three to five. So a text
 * has at least one token per this many bytes that differ from the byte before.
 */
const MAX_CHANGES_PER_TOKEN = 16;

/** A longer request cannot fit into the window: no tokenizer has that many bytes per token, except in long runs of blanks. */
const MAX_BYTES_PER_TOKEN = 8;

/**
 * The size of the request as it is sent: all its members, also ids, names and schemas. The weights are chosen to be at or above the counts of
 * common tokenizers for prose and code in any language, digits and emoji; `docs/reference/quotas.md` lists them.
 */
export function requestSize({ system, messages, tools }: Pick<ModelInput, 'system' | 'messages' | 'tools'>): TextSize {
  return textSize(JSON.stringify({ system, messages, tools }));
}

/** The size of a value in JSON. */
export function jsonSize(value: Json): TextSize {
  return textSize(JSON.stringify(value));
}

export function textSize(text: string): TextSize {
  const bytes = Buffer.from(text);
  let thirds = 0;
  let changes = 0;
  let previous = -1;
  // An iterator takes three times as long.
  for (let index = 0; index < bytes.length; index += 1) {
    const byte = bytes[index] ?? 0;
    thirds += WEIGHTS[byte] ?? 0;
    if (byte !== previous) changes += 1;
    previous = byte;
  }
  const tokens = Math.ceil(thirds / THIRDS_OF_A_TOKEN);
  return { bytes: bytes.length, tokens, minTokens: Math.floor(changes / MAX_CHANGES_PER_TOKEN) };
}

/** How many UTF-16 units of the text have at most this many estimated tokens. Never splits a character. */
export function unitsWithin(text: string, tokens: number): number {
  let thirds = tokens * THIRDS_OF_A_TOKEN;
  let units = 0;
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    thirds -= code < 0x80 ? (WEIGHTS[code] ?? 0) : PER_NON_ASCII_BYTE * Buffer.byteLength(character);
    if (thirds < 0) break;
    units += character.length;
  }
  return units;
}

/** Throws TEMPER_MODEL_CONTEXT_OVERFLOW for a request that cannot fit into the model's window, before it is sent. */
export function assertFitsWindow({ bytes }: TextSize, { id, contextTokens }: ResolvedModel): void {
  const limit = MAX_BYTES_PER_TOKEN * contextTokens;
  if (bytes <= limit) return;
  throw new TemperError(
    'TEMPER_MODEL_CONTEXT_OVERFLOW',
    `the request for "${id}" has ${bytes} bytes, and at most ${limit} fit into its context window of ${contextTokens} tokens; shorten the conversation, or correct contextWindow of the model`,
    { details: { bytes, limit, contextTokens } },
  );
}
