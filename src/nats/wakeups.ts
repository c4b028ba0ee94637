import type { JetStreamConnection } from './connection/connection.ts';
import { QUEUES, subjects } from './jetstream/names.ts';
import { publish } from './jetstream/publish.ts';
import { consumeQueue } from './jetstream/queue-consumer.ts';

export interface Wakeups {
  /** Requests a pod for an agent. Pending requests of one agent are merged into one. Throws TEMPER_BUS_*. */
  publish(agentUid: string): Promise<void>;
  /** Calls `wake` for each request until the signal is aborted. When `wake` throws, `onFailure` is called and the request is redelivered. */
  consume(
    wake: (agentUid: string) => Promise<void>,
    signal: AbortSignal,
    onFailure?: (error: unknown) => void,
  ): Promise<void>;
}

/** Wakeup requests for agents without a pod: gateways publish them, the operator consumes them. */
export function createWakeups(connection: JetStreamConnection): Wakeups {
  return {
    async publish(agentUid) {
      await publish(connection, subjects.wakeups(agentUid), {});
    },
    async consume(wake, signal, onFailure = () => undefined) {
      const queue = { ...QUEUES.wakeups, signal, onFailure };
      await consumeQueue(connection, queue, ({ subject }) => wake(subject.slice('temper.wakeups.'.length)));
    },
  };
}
