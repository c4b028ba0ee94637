import type Anthropic from '@anthropic-ai/sdk';
import { adapterModel, type AdapterOptions, type ProviderConnection, type WireFormat } from '../adapter/adapter.ts';
import type { ModelPipeline } from '../pipeline.ts';
import { anthropicNormalizer } from './normalize.ts';
import { messagesRequest } from './request.ts';

interface AnthropicOptions extends AdapterOptions {
  /** Without `/v1`. */
  baseUrl: string;
}

/** Longer than every deadline: the adapter aborts calls itself. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** Anthropic Messages. It has no embeddings. */
export function anthropicModel(options: AnthropicOptions): ModelPipeline {
  const wire: WireFormat = {
    async send(request, model, connection) {
      const client = await anthropicClient(options.baseUrl, connection);
      const body = messagesRequest(request, model);
      const response = await client.messages.create(body, { signal: connection.signal }).asResponse();
      return { response, events: () => anthropicEvents(client, response, connection) };
    },
    normalizer: anthropicNormalizer,
  };
  return adapterModel(wire, options);
}

/** Creates one client per call, because the key may have been rotated. Reads no environment variables and logs nothing. */
async function anthropicClient(baseURL: string, connection: ProviderConnection): Promise<Anthropic> {
  const { Anthropic: Client } = await import('@anthropic-ai/sdk');
  return new Client({
    baseURL,
    apiKey: connection.key,
    webhookKey: null,
    fetch: connection.fetch,
    maxRetries: 0,
    timeout: MAX_TIMEOUT_MS,
    logLevel: 'off',
    openTelemetry: false,
  });
}

async function* anthropicEvents(client: Anthropic, response: Response, connection: ProviderConnection): AsyncGenerator {
  const { Stream } = await import('@anthropic-ai/sdk/streaming');
  const controller = new AbortController();
  const abort = (): void => controller.abort(connection.signal.reason);
  connection.signal.addEventListener('abort', abort, { once: true });
  if (connection.signal.aborted) abort();
  try {
    yield* Stream.fromSSEResponse<unknown>(response, controller, client);
  } finally {
    connection.signal.removeEventListener('abort', abort);
  }
}
