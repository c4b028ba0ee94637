import { Type } from 'typebox';
import type { ErrorCode } from '../../lib/error-codes.ts';
import type { Json } from '../../lib/json.ts';

/**
 * Text with the limit that the gateway enforces. The type of the member is `string`: components inside a process exchange longer text,
 * and only a request to the gateway is refused for its length.
 */
export function text(maxLength: number, description: string, minLength = 1) {
  return Type.String({ minLength, maxLength, description });
}

export const SessionId = Type.String({
  pattern: '^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$',
  description: 'Id of a session of an agent.',
});

/** Only the form of an error code. Handlers check whether the code exists, so that a new code changes no schema. */
export const Code = Type.Unsafe<ErrorCode>({
  type: 'string',
  pattern: '^TEMPER_[A-Z_]{1,60}$',
  description: 'An error code; see the error reference.',
});

export const AnyJson = Type.Unsafe<Json>({});
