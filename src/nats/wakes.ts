import type { BusConnection } from './connection.ts';
import { CONSUMERS, STREAMS, subjects } from './names.ts';
import { publish } from './publish.ts';
import { workOff } from './work.ts';

export interface Wakes {
  /** Asks for a pod. Several for one agent that nobody has taken yet are one. */
  publish(agentUid: string): Promise<void>;
  /** Calls `wake` for each until the signal is aborted. One whose `wake` throws comes again; `onFailure` is told. */
  consume(
    wake: (agentUid: string) => Promise<void>,
    signal: AbortSignal,
    onFailure?: (error: unknown) => void,
  ): Promise<void>;
}

/** What an agent without a pod is woken by: gateways publish, the operator consumes. */
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
