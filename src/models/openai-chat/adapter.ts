import { adapterModel, type AdapterOptions } from '../adapter/adapter.ts';
import type { WireFormat } from '../adapter/wire-format.ts';
import { openaiClient, openaiEvents } from '../openai/client.ts';
import { openaiEmbed } from '../openai/embeddings.ts';
import type { ModelPipeline } from '../pipeline.ts';
import { chatNormalizer } from './normalize.ts';
import { chatRequest, type ChatDialect } from './request.ts';

interface ChatOptions extends AdapterOptions {
  /** With `/v1`. */
  baseUrl: string;
  dialect: ChatDialect;
  /** Embedding model; without it the provider has no embeddings. */
  embeddingModel?: string;
}

/** OpenAI Chat Completions, and the servers that are compatible with it. */
export function openaiChatModel(options: ChatOptions): ModelPipeline {
  const { baseUrl, dialect, embeddingModel } = options;
  const wire: WireFormat = {
    async send(request, model, connection) {
      const client = await openaiClient(baseUrl, connection);
      const body = chatRequest(request, model, dialect);
      const response = await client.chat.completions.create(body, { signal: connection.signal }).asResponse();
      return { response, events: () => openaiEvents(client, response, connection) };
    },
    normalizer: chatNormalizer,
  };
  if (embeddingModel !== undefined)
    wire.embed = (texts, connection) => openaiEmbed(baseUrl, embeddingModel, texts, connection);
  return adapterModel(wire, options);
}
