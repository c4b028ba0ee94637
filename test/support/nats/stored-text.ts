import type { JetStreamConnection } from '../../../src/nats/connection/connection.ts';
import { readMessages } from '../../../src/nats/jetstream/stream-reader.ts';
import { desiredStreams } from '../../../src/nats/jetstream/topology.ts';

/** The streams and buckets that have a message with the text, each with the subject of the first one. */
export async function streamsWithText(operator: JetStreamConnection, text: string): Promise<string[]> {
  const found: string[] = [];
  for (const { name } of desiredStreams()) {
    for await (const { subject, data } of readMessages(operator, name, '>')) {
      if (!`${subject} ${Buffer.from(data).toString('utf8')}`.includes(text)) continue;
      found.push(`${name}: ${subject}`);
      break;
    }
  }
  return found;
}
