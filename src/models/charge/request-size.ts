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
}

/** Weights in thirds of a token, so that sums are exact. */
const PLAIN = 1;
const UPPER_CASE = 2;
const PER_NON_ASCII_BYTE = 2;
const OTHER = 3;
const THIRDS_OF_A_TOKEN = 3;

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
  let thirds = 0;
  let bytes = 0;
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    if (unit < 0x80) {
      thirds += asciiWeight(unit);
      bytes += 1;
      continue;
    }
    // The two halves of a surrogate pair have two bytes each.
    const count = unit < 0x800 || (unit & 0xf800) === 0xd800 ? 2 : 3;
    thirds += PER_NON_ASCII_BYTE * count;
    bytes += count;
  }
  return { bytes, tokens: Math.ceil(thirds / THIRDS_OF_A_TOKEN) };
}

function asciiWeight(unit: number): number {
  const isLowerCase = unit >= 0x61 && unit <= 0x7a;
  if (isLowerCase || unit === 0x20) return PLAIN;
  return unit >= 0x41 && unit <= 0x5a ? UPPER_CASE : OTHER;
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
