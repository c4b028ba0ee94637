import { adapterModel, type AdapterOptions } from '../adapter/adapter.ts';
import type { WireFormat } from '../adapter/wire-format.ts';
import { openaiClient, openaiEvents } from '../openai/client.ts';
import { openaiEmbed } from '../openai/embeddings.ts';
import type { ModelPipeline } from '../pipeline.ts';
import { responsesNormalizer } from './normalize.ts';
import { responsesRequest } from './request.ts';

interface ResponsesOptions extends AdapterOptions {
  /** With `/v1`. */
  baseUrl: string;
  /** Embedding model; without it the provider has no embeddings. */
  embeddingModel?: string;
}

/** OpenAI Responses. */
export function openaiResponsesModel(options: ResponsesOptions): ModelPipeline {
  const { baseUrl, embeddingModel } = options;
  const wire: WireFormat = {
    async send(request, model, connection) {
      const client = await openaiClient(baseUrl, connection);
      const body = responsesRequest(request, model);
      const response = await client.responses.create(body, { signal: connection.signal }).asResponse();
      return { response, events: () => openaiEvents(client, response, connection) };
    },
    normalizer: responsesNormalizer,
  };
  if (embeddingModel !== undefined)
    wire.embed = (texts, connection) => openaiEmbed(baseUrl, embeddingModel, texts, connection);
  return adapterModel(wire, options);
}
