import type { ClientConnection } from '../../engine/calls/client-calls.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import { tryDigestOf } from '../../lib/canonical.ts';
import { isTemperError, messageOf } from '../../lib/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../../lib/json.ts';
import { failedResult } from '../../mcp/server/results.ts';
import type { ServedCall, ServedResult, ServedTools } from '../../mcp/server/served.ts';
import type { ParkedCall, ToolDescriptor, ToolResult } from '../../tools/contract.ts';
import { ASK_AGENT, type AskedAgent } from './ask-agent.ts';

/** Longer results are refused: a client gives them to a model. */
const MAX_TEXT = 1_000_000;
/** The tool itself ends earlier, at its own timeout. */
const CALL_TIMEOUT_MS = 24 * 3_600_000;

/** The calls of the tools of an agent, which may be elsewhere. */
export interface ServedCalls {
  offered(client: ClientConnection): readonly ToolDescriptor[] | Promise<readonly ToolDescriptor[]>;
  /** As that of `ClientCalls`. */
  invoke(tool: string, input: Json, client: ClientConnection, op: CallOptions): Promise<ToolResult | ParkedCall>;
}

export interface ClientToolsDeps {
  calls: ServedCalls;
  client: ClientConnection;
  agent: Pick<AskedAgent, 'ask'>;
  now: () => number;
  newId: () => string;
  howToDecide(request: string): string;
}

/** The tools of an agent for one client, and the agent itself as a tool. */
export class ClientTools implements ServedTools {
  readonly #deps: ClientToolsDeps;
  /** The keys of calls that wait for a decision, by tool and arguments: the same call again is the call that was decided about. */
  readonly #parked = new Map<string, string>();
  readonly #running = new Set<Promise<unknown>>();

  constructor(deps: ClientToolsDeps) {
    this.#deps = deps;
  }

  async list(): Promise<readonly ToolDescriptor[]> {
    const { calls, client } = this.#deps;
    const offered = await calls.offered(client);
    return [ASK_AGENT, ...offered.filter(({ name }) => name !== ASK_AGENT.name)];
  }

  async call(name: string, input: JsonObject, call: ServedCall): Promise<ServedResult> {
    const work = name === ASK_AGENT.name ? this.#deps.agent.ask(input, call) : this.#invoke(name, input, call);
    this.#running.add(work);
    try {
      return await work;
    } catch (error) {
      return failedResult(isTemperError(error) ? error : { code: 'TEMPER_INTERNAL', message: messageOf(error, 300) });
    } finally {
      this.#running.delete(work);
    }
  }

  /** Resolves when no call is in work. */
  async idle(): Promise<void> {
    await Promise.allSettled(this.#running);
  }

  async #invoke(name: string, input: JsonObject, { signal }: ServedCall): Promise<ServedResult> {
    const { calls, client, now, newId } = this.#deps;
    const same = tryDigestOf({ name, input });
    const parked = same === undefined ? undefined : this.#parked.get(same);
    // Another call with the same arguments, at the same time, needs a decision of its own.
    if (same !== undefined) this.#parked.delete(same);
    const key = parked ?? newId();
    const result = await calls.invoke(name, input, client, { signal, deadline: now() + CALL_TIMEOUT_MS, key });
    if (!('parked' in result)) return resultOf(result);
    if (same !== undefined) this.#parked.set(same, key);
    return this.#pending(result);
  }

  #pending({ parked, tool }: ParkedCall): ServedResult {
    const message = `"${tool}" waits for the decision of a user: ${this.#deps.howToDecide(parked)}. Then make the same call again`;
    return { ...failedResult({ code: 'TEMPER_APPROVAL_PENDING', message }), approvalRequest: parked };
  }
}

function resultOf(result: ToolResult): ServedResult {
  if (!result.ok) return failedResult(result.error);
  const { output, notice } = result;
  const text = typeof output === 'string' ? output : JSON.stringify(output);
  if (text.length > MAX_TEXT) {
    const message = `the output has ${text.length} characters, and a client gets at most ${MAX_TEXT}; ask for less`;
    return failedResult({ code: 'TEMPER_TOOL_OUTPUT_INVALID', message });
  }
  return {
    text: notice === undefined ? text : `${text}\n[LOOP GUARD] ${notice}`,
    isError: false,
    ...structured(output),
  };
}

function structured(output: Json): Pick<ServedResult, 'structured'> {
  return isJsonObject(output) ? { structured: output } : {};
}
