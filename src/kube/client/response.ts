import { readBody } from '../../lib/async/read-body.ts';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { type Json, member, parseUntrustedJson, textAt } from '../../lib/json.ts';
import { ApiError } from './kube-client.ts';

/** The maximum size of a response whose request names no other. */
const MAX_RESPONSE_BYTES = 64 * 1024 * 1024;
const MAX_ERROR_RESPONSE_BYTES = 1024 * 1024;
const MAX_MESSAGE_LENGTH = 1_000;

function tooLarge(what: string, limit: number): TemperError {
  return new TemperError('TEMPER_KUBE_RESPONSE_TOO_LARGE', `${what}: the response is larger than ${limit} bytes`);
}

/** The JSON body of a successful response. Throws `TEMPER_KUBE_RESPONSE_TOO_LARGE` as soon as it has more than `maxBytes`. */
export async function readResponse(
  body: AsyncIterable<Uint8Array>,
  what: string,
  maxBytes = MAX_RESPONSE_BYTES,
): Promise<Json> {
  const text = await readBody(body, maxBytes, () => tooLarge(what, maxBytes));
  try {
    return parseUntrustedJson(text);
  } catch (error) {
    throw new TemperError('TEMPER_KUBE_UNREACHABLE', `${what}: the response is not JSON`, { cause: error });
  }
}

/** The error of an unsuccessful response, from the `Status` object in its body if there is one. */
export async function readError(
  status: number,
  retryAfter: string | undefined,
  body: AsyncIterable<Uint8Array>,
  what: string,
): Promise<ApiError> {
  const text = await readBody(body, MAX_ERROR_RESPONSE_BYTES, () => tooLarge(what, MAX_ERROR_RESPONSE_BYTES));
  return errorFrom(status, parsedOr(text), what, secondsOf(retryAfter));
}

/** The error of a `Status` object, or of plain text. `retryAfterSeconds` overrides the value in the object. */
export function errorFrom(status: number, body: Json, what: string, retryAfterSeconds?: number): ApiError {
  const reason = textAt(body, ['reason']);
  const message = printable(typeof body === 'string' ? body : textAt(body, ['message']), MAX_MESSAGE_LENGTH);
  const detail = member(member(body, 'details'), 'retryAfterSeconds');
  const seconds = retryAfterSeconds ?? (typeof detail === 'number' ? detail : undefined);
  return new ApiError(
    status,
    reason,
    `${what}: ${[status, printable(reason, 100), message].filter(Boolean).join(' ')}`,
    seconds,
  );
}

function parsedOr(text: string): Json {
  try {
    return parseUntrustedJson(text);
  } catch {
    // Proxies send errors as HTML or plain text.
    return text;
  }
}

/** Parses Retry-After. Whole seconds only; the API server sends no dates. */
function secondsOf(header: string | undefined): number | undefined {
  return header !== undefined && /^\d{1,6}$/.test(header.trim()) ? Number(header) : undefined;
}
