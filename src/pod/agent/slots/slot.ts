import { RemoteBus } from '../../../gateway-client/bus.ts';
import type { GatewayClient } from '../../../gateway-client/gateway-client.ts';
import { ReportSender } from '../../../gateway-client/report-sender.ts';
import { StagedItems } from '../../../gateway-client/session/staged-items.ts';
import { ToolCallCounter } from '../../../tempering/hygiene/tool-calls.ts';
import { CurrentMessage } from '../current-message.ts';
import { Worker, type WorkerDeps } from '../worker.ts';

/** What all slots of a pod share: nothing of it belongs to one message. */
export interface SharedDeps
  extends Omit<WorkerDeps, 'client' | 'bus' | 'reports' | 'currentMessage' | 'staged' | 'toolCalls'> {
  client: GatewayClient;
}

/** Works on one message at a time. */
export interface Slot extends AsyncDisposable {
  worker: Worker;
}

/** A slot with everything that belongs to its message: token, history, items, reports, counts and the engine with its tools. */
export function openSlot(shared: SharedDeps): Slot {
  const { client, clock, ids, log } = shared;
  const currentMessage = new CurrentMessage();
  const { deliveryToken, reportToken, answerSignatures } = currentMessage;
  const onError = (problem: string): void => log.warn({ problem }, 'reports');
  const reports = new ReportSender({ client, clock, ids, deliveryToken: reportToken, answerSignatures, onError });
  const worker = new Worker({
    ...shared,
    bus: new RemoteBus({ client, clock, ids, deliveryToken }),
    reports,
    currentMessage,
    staged: new StagedItems(),
    toolCalls: new ToolCallCounter(),
  });
  return {
    worker,
    async [Symbol.asyncDispose]() {
      await worker.stop();
      await reports[Symbol.asyncDispose]();
    },
  };
}
