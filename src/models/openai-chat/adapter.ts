import type OpenAI from 'openai';
import { adapterModel, type AdapterOptions, type Connection, type Wire } from '../adapter.ts';
import { openaiClient, openaiEvents } from '../openai-client.ts';
import type { Model } from '../port.ts';
import { chatNormalizer } from './normalize.ts';
import { chatRequest, type ChatDialect } from './request.ts';

export interface ChatOptions extends AdapterOptions {
  baseUrl: string;
  dialect: ChatDialect;
  /** Model that makes vectors; without it the provider has no embeddings. */
  embeddingModel?: string;
}

/** OpenAI Chat Completions, and the many servers that speak it. */
export function openaiChatModel(options: ChatOptions): Model {
  const { baseUrl, dialect, embeddingModel } = options;
  const client = (connection: Connection): Promise<OpenAI> => openaiClient(baseUrl, connection);
  const wire: Wire = {
    async send(request, model, connection) {
      const sdk = await client(connection);
      const body = chatRequest(request, model, dialect);
      const response = await sdk.chat.completions.create(body, { signal: connection.signal }).asResponse();
      return { response, events: () => openaiEvents(sdk, response, connection) };
    },
    normalizer: chatNormalizer,
  };
  if (embeddingModel !== undefined) {
    wire.embed = async (texts, connection) => {
      const sdk = await client(connection);
      const body = { model: embeddingModel, input: texts, encoding_format: 'float' } as const;
      const answer = await sdk.embeddings.create(body, { signal: connection.signal });
      return answer.data.toSorted((left, right) => left.index - right.index).map((item) => item.embedding);
    };
  }
  return adapterModel(wire, options);
}
