import type Anthropic from '@anthropic-ai/sdk';
import { onAbort } from '../../lib/async/abort.ts';
import { MAX_TIMER_MS } from '../../lib/clock.ts';
import { adapterModel, type AdapterOptions } from '../adapter/adapter.ts';
import type { ProviderConnection, WireFormat } from '../adapter/wire-format.ts';
import type { ModelPipeline } from '../pipeline.ts';
import { anthropicNormalizer } from './normalize.ts';
import { messagesRequest } from './request.ts';

interface AnthropicOptions extends AdapterOptions {
  /** Without `/v1`. */
  baseUrl: string;
}

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
    // Longer than every deadline: the adapter aborts calls itself.
    timeout: MAX_TIMER_MS,
    logLevel: 'off',
    openTelemetry: false,
  });
}

async function* anthropicEvents(client: Anthropic, response: Response, connection: ProviderConnection): AsyncGenerator {
  const { Stream } = await import('@anthropic-ai/sdk/streaming');
  const controller = new AbortController();
  using _cancellation = onAbort(connection.signal, () => controller.abort(connection.signal.reason));
  yield* Stream.fromSSEResponse<unknown>(response, controller, client);
}
