import type OpenAI from 'openai';
import type { ProviderConnection } from '../adapter/adapter.ts';

/** Longer than every deadline: the adapter aborts calls itself. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** Creates one client per call, because the key may have been rotated. Reads no environment variables and logs nothing. */
export async function openaiClient(baseURL: string, connection: ProviderConnection): Promise<OpenAI> {
  const { OpenAI: Client } = await import('openai');
  return new Client({
    baseURL,
    apiKey: connection.key,
    adminAPIKey: null,
    webhookSecret: null,
    organization: null,
    project: null,
    fetch: connection.fetch,
    maxRetries: 0,
    timeout: MAX_TIMEOUT_MS,
    logLevel: 'off',
  });
}

/** The events of a stream as the SDK decodes them, in-band errors included. */
export async function* openaiEvents(
  client: OpenAI,
  response: Response,
  connection: ProviderConnection,
): AsyncGenerator {
  const { Stream } = await import('openai/streaming');
  const controller = new AbortController();
  const abort = (): void => controller.abort(connection.signal.reason);
  connection.signal.addEventListener('abort', abort, { once: true });
  if (connection.signal.aborted) abort();
  try {
    yield* Stream.fromSSEResponse<unknown>(response, controller, client, false, 'events');
  } finally {
    connection.signal.removeEventListener('abort', abort);
  }
}
