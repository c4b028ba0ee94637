import type { JetStreamConnection } from '../connection/connection.ts';
import { isConsumerMissing, isStreamMissing, natsError } from '../connection/errors.ts';

/** Deletes all consumers of a stream that is read without one. Idempotent. */
export async function removeConsumers({ manager }: JetStreamConnection, stream: string): Promise<void> {
  try {
    const { state } = await manager.streams.info(stream);
    if (state.consumer_count === 0) return;
    const names: string[] = [];
    for await (const { name } of manager.consumers.list(stream)) names.push(name);
    for (const name of names) await manager.consumers.delete(stream, name);
  } catch (error) {
    // Another operator deletes them too; the next round finds what is left.
    if (isConsumerMissing(error) || isStreamMissing(error)) return;
    throw natsError(error, `deleting the consumers of ${stream}`);
  }
}
