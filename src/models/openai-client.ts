import type OpenAI from 'openai';
import type { Connection } from './adapter.ts';

/** Longer than any deadline: the adapter ends calls itself. */
const NO_TIMEOUT = 2 ** 31 - 1;

/** One client a call: the key may have been renewed. Nothing is taken from the environment, nothing is logged. */
export async function openaiClient(baseURL: string, connection: Connection): Promise<OpenAI> {
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
    timeout: NO_TIMEOUT,
    logLevel: 'off',
  });
}

/** The events of a stream as the SDK decodes them, in-band errors included. */
export async function* openaiEvents(client: OpenAI, response: Response, connection: Connection): AsyncGenerator {
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
