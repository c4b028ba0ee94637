import { isJsonObject, type Json } from '../../lib/json.ts';
import type { Embeddings, ProviderConnection } from '../adapter/wire-format.ts';
import { countAt, objectAt } from '../adapter/json-members.ts';
import { openaiClient } from './client.ts';

/** One vector per text, in the order of the texts. */
export async function openaiEmbed(
  baseUrl: string,
  model: string,
  texts: string[],
  connection: ProviderConnection,
): Promise<Embeddings> {
  const client = await openaiClient(baseUrl, connection);
  const body = { model, input: texts, encoding_format: 'float' } as const;
  const answer = await client.embeddings.create(body, { signal: connection.signal });
  // The SDK does not check the body.
  const data = Array.isArray(answer.data) ? answer.data.filter(isJsonObject) : [];
  const usage = objectAt(answer as unknown as Json, 'usage');
  return {
    vectors: data.toSorted((left, right) => left.index - right.index).map((item) => item.embedding),
    inputTokens: countAt(usage, 'prompt_tokens') ?? countAt(usage, 'total_tokens') ?? 0,
  };
}
