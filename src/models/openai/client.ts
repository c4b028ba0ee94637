import type OpenAI from 'openai';
import { onAbort } from '../../lib/async/abort.ts';
import { MAX_TIMER_MS } from '../../lib/clock.ts';
import type { ProviderConnection } from '../adapter/wire-format.ts';

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
    // Longer than every deadline: the adapter aborts calls itself.
    timeout: MAX_TIMER_MS,
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
  using _cancellation = onAbort(connection.signal, () => controller.abort(connection.signal.reason));
  yield* Stream.fromSSEResponse<unknown>(response, controller, client, false, 'events');
}
