import { adapterModel, type AdapterOptions, type Wire } from '../adapter.ts';
import { openaiClient, openaiEvents } from '../openai-client.ts';
import type { Model } from '../port.ts';
import { responsesNormalizer } from './normalize.ts';
import { responsesRequest } from './request.ts';

interface ResponsesOptions extends AdapterOptions {
  baseUrl: string;
}

/** OpenAI Responses. */
export function openaiResponsesModel(options: ResponsesOptions): Model {
  const wire: Wire = {
    async send(request, model, connection) {
      const client = await openaiClient(options.baseUrl, connection);
      const body = responsesRequest(request, model);
      const response = await client.responses.create(body, { signal: connection.signal }).asResponse();
      return { response, events: () => openaiEvents(client, response, connection) };
    },
    normalizer: responsesNormalizer,
  };
  return adapterModel(wire, options);
}
