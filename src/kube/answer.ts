import { TemperError } from '../lib/errors.ts';
import { printable } from '../lib/escape.ts';
import { type Json, member, parseUntrustedJson, textAt } from '../lib/json.ts';
import { ApiError } from './client.ts';

/** Bytes of an answer that are read; a page of five hundred large objects stays below. */
const LARGEST_ANSWER = 64 * 1024 * 1024;
/** What is read of an answer that says no. */
const LARGEST_REFUSAL = 1024 * 1024;
const LONGEST_MESSAGE = 1_000;

/** Reads the body to its end. Throws `TEMPER_KUBE_UNREACHABLE` when it is longer than the limit. */
async function readBody(body: AsyncIterable<Uint8Array>, limit: number, what: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > limit) {
      throw new TemperError('TEMPER_KUBE_UNREACHABLE', `${what}: the answer is longer than ${limit} bytes`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

/** The JSON of a success. */
export async function readAnswer(body: AsyncIterable<Uint8Array>, what: string): Promise<Json> {
  const text = await readBody(body, LARGEST_ANSWER, what);
  try {
    return parseUntrustedJson(text);
  } catch (error) {
    throw new TemperError('TEMPER_KUBE_UNREACHABLE', `${what}: the answer is not JSON`, { cause: error });
  }
}

/** The error in an answer that is no success: its `Status`, when it has one. */
export async function readRefusal(
  status: number,
  retryAfter: string | undefined,
  body: AsyncIterable<Uint8Array>,
  what: string,
): Promise<ApiError> {
  const text = await readBody(body, LARGEST_REFUSAL, what);
  return refusalOf(status, parsedOr(text), what, secondsOf(retryAfter));
}

/** The error in a `Status` object. */
export function refusalOf(status: number, answer: Json, what: string, retryAfterSeconds?: number): ApiError {
  const reason = textAt(answer, ['reason']);
  const message = printable(typeof answer === 'string' ? answer : textAt(answer, ['message']), LONGEST_MESSAGE);
  const told = member(member(answer, 'details'), 'retryAfterSeconds');
  const seconds = retryAfterSeconds ?? (typeof told === 'number' ? told : undefined);
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
    // Proxies on the way say no in HTML or plain text.
    return text;
  }
}

/** Whole seconds only; the API server sends no dates. */
function secondsOf(header: string | undefined): number | undefined {
  return header !== undefined && /^\d{1,6}$/.test(header.trim()) ? Number(header) : undefined;
}
