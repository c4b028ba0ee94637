import type { MessageCall } from '../../bus/port.ts';
import type { Invoker } from '../../tools/contract.ts';

/** Calls the tool of the message only with its digest. The name in the session stays without one: providers refuse other characters. */
export function pinnedInvoker(invoker: Invoker, { tool, digest }: MessageCall): Invoker {
  if (digest === undefined) return invoker;
  return {
    invoke: (...call) => invoker.invoke(...call),
    invokeOrPark: (name, ...call) => invoker.invokeOrPark(name === tool ? `${name}@${digest}` : name, ...call),
    visible: (caller) => invoker.visible(caller),
  };
}
