import type { BusConnection } from './connection.ts';
import { CONSUMERS, STREAMS, subjects } from './names.ts';
import { publish } from './publish.ts';
import { workOff } from './work.ts';

export interface Wakes {
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
export function createWakes(connection: BusConnection): Wakes {
  return {
    async publish(agentUid) {
      await publish(connection, subjects.wakes(agentUid), {});
    },
    async consume(wake, signal, onFailure = () => undefined) {
      const queue = { stream: STREAMS.wakes, consumer: CONSUMERS.wakes, signal, onFailure };
      await workOff(connection, queue, ({ subject }) => wake(subject.slice('temper.wakes.'.length)));
    },
  };
}
