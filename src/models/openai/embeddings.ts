import type { ProviderConnection } from '../adapter/adapter.ts';
import { openaiClient } from './client.ts';

/** One vector per text, in the order of the texts. */
export async function openaiEmbed(
  baseUrl: string,
  model: string,
  texts: string[],
  connection: ProviderConnection,
): Promise<number[][]> {
  const client = await openaiClient(baseUrl, connection);
  const body = { model, input: texts, encoding_format: 'float' } as const;
  const answer = await client.embeddings.create(body, { signal: connection.signal });
  return answer.data.toSorted((left, right) => left.index - right.index).map((item) => item.embedding);
}
