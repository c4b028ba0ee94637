import type { Clock } from '../../lib/clock.ts';
import { isTemperError, messageOf, TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { isJsonObject, member, type Json } from '../../lib/json.ts';
import { parseFailure, formatError, providerError } from './provider-errors.ts';

/** Upper limit of a provider's `Retry-After`: one day. */
const MAX_RETRY_AFTER_MS = 86_400_000;

/** The call that failed. */
interface FailedCall {
  provider: string;
  /** Removed from messages. */
  key: string;
  /** The request or the texts to embed. */
  sent: Json;
}

/** Converts any error of a call to a provider to a typed error. */
export function classifyError(error: unknown, { provider, key, sent }: FailedCall, clock: Clock): TemperError {
  const typed = findTemperError(error);
  if (typed) return typed;
  if (error instanceof SyntaxError) return formatError(provider, 'sent an event that is not JSON', 'never', error);
  const status = field(error, 'status');
  const headers = field(error, 'headers');
  const body = field(error, 'error');
  if (typeof status !== 'number' && body === undefined) return connectionLost(provider, error, key);
  const failure = parseFailure(innermost(body as Json | undefined));
  if (failure.message === 'no message was given') failure.message = messageOf(error, 500);
  failure.message = withoutKey(failure.message, key);
  failure.sentText = () => textOf(sent);
  if (typeof status === 'number') failure.status = status;
  const wait = headers instanceof Headers ? retryAfter(headers, clock) : undefined;
  if (wait !== undefined) failure.retryAfterMs = wait;
  return providerError(provider, failure);
}

/** The inner error object: Anthropic has one more level than OpenAI. */
function innermost(body: Json | undefined): Json | undefined {
  const inner = member(body, 'error');
  return isJsonObject(inner) ? inner : body;
}

/** Finds a typed error in the cause chain: `guardedFetch` throws typed errors, which the SDK wraps in its own. */
function findTemperError(error: unknown): TemperError | undefined {
  let current = error;
  for (let depth = 0; depth < 8 && current instanceof Error; depth += 1) {
    if (isTemperError(current)) return current;
    current = current.cause;
  }
  return undefined;
}

function connectionLost(provider: string, error: unknown, key: string): TemperError {
  const reason = withoutKey(printable(messageOf(rootCause(error), 300)), key);
  return new TemperError('TEMPER_MODEL_OVERLOADED', `the connection to provider "${provider}" failed: ${reason}`, {
    retry: 'backoff',
    details: { provider },
  });
}

/** The innermost cause: the message of the outer error is only `fetch failed`. */
function rootCause(error: unknown): unknown {
  let current = error;
  for (let depth = 0; depth < 8 && current instanceof Error && current.cause instanceof Error; depth += 1) {
    current = current.cause;
  }
  return current;
}

/** All texts of a value, as the provider reads them: without the escapes of JSON. */
function textOf(value: Json): string {
  if (typeof value === 'string') return value;
  if (typeof value !== 'object' || value === null) return '';
  return Object.entries(value)
    .map(([name, inner]) => `${name}\n${textOf(inner)}`)
    .join('\n');
}

function withoutKey(text: string, key: string): string {
  return key.length < 8 ? text : text.replaceAll(key, '[key]');
}

function field(error: unknown, name: string): unknown {
  return typeof error === 'object' && error !== null ? (error as Record<string, unknown>)[name] : undefined;
}

/** Milliseconds from `retry-after-ms`, or from `retry-after` in seconds or as a date. */
function retryAfter(headers: Headers, clock: Clock): number | undefined {
  const milliseconds = finite(headers.get('retry-after-ms'));
  const seconds = finite(headers.get('retry-after'));
  const date = Date.parse(headers.get('retry-after') ?? '');
  let wait = milliseconds ?? (seconds === undefined ? undefined : seconds * 1_000);
  if (wait === undefined && !Number.isNaN(date)) wait = date - clock.now().getTime();
  return wait === undefined ? undefined : Math.min(MAX_RETRY_AFTER_MS, Math.max(0, Math.round(wait)));
}

function finite(text: string | null): number | undefined {
  const value = text === null || text.trim() === '' ? Number.NaN : Number(text);
  return Number.isFinite(value) ? value : undefined;
}
