import { TemperError } from '../lib/errors.ts';
import type { CallerContext, ToolDescriptor, ToolView } from './contract.ts';

/** A call that ends early when its tool leaves service. */
export interface RunningCall extends Disposable {
  /** Aborted with TEMPER_TOOL_DEMOTED as its reason. */
  readonly signal: AbortSignal;
}

interface TrackedCall {
  tool: ToolDescriptor;
  caller: CallerContext;
  ending: AbortController;
}

export interface RunningCallsDeps {
  /** The current tools of the agent. */
  view(caller: CallerContext): ToolView;
  /** Calls the listener after each change of the tools, when `view` has it. */
  onChange(listener: () => void): void;
}

/** The running calls of forged tools. A change of the tools aborts each call whose version of the tool is no longer in the view. */
export class RunningCalls {
  readonly #calls = new Set<TrackedCall>();

  constructor(deps: RunningCallsDeps) {
    deps.onChange(() => {
      for (const { tool, caller, ending } of this.#calls) {
        if (deps.view(caller).find(tool.name)?.descriptor.forged?.digest !== tool.forged?.digest)
          ending.abort(endedEarly(tool));
      }
    });
  }

  start(tool: ToolDescriptor, caller: CallerContext): RunningCall {
    const call = { tool, caller, ending: new AbortController() };
    if (tool.forged !== undefined) this.#calls.add(call);
    return { signal: call.ending.signal, [Symbol.dispose]: () => this.#calls.delete(call) };
  }
}

function endedEarly({ name }: ToolDescriptor): TemperError {
  return new TemperError(
    'TEMPER_TOOL_DEMOTED',
    `"${name}" left service while the call ran, and the policy ends such calls; its effects are unknown`,
    { details: { rule: 'forge.runningCalls' } },
  );
}
