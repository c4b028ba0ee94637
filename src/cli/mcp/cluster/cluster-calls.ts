import { parseCallReply } from '../../../agent/call/call-reply.ts';
import type { ClientConnection } from '../../../engine/calls/client-calls.ts';
import type { SessionStreamLine, UserMessageReceipt } from '../../../gateway-api/user-api.ts';
import type { CallOptions } from '../../../lib/call-options.ts';
import { messageFailure } from '../../../gateway-api/events/message-failure.ts';
import { isTemperError, messageOf } from '../../../lib/errors.ts';
import { isJsonObject, type Json, textAt } from '../../../lib/json.ts';
import { printable } from '../../../lib/printable.ts';
import type { ParkedCall, ToolDescriptor, ToolFailure, ToolResult } from '../../../tools/contract.ts';
import type { GatewayUserClient } from '../../cluster/gateway-user-client.ts';
import { behind, type LinePosition, messageLines } from '../../cluster/messages/message-lines.ts';
import { sendToolCall } from '../../cluster/messages/sent-message.ts';
import { listOf } from '../../cluster/session-tools.ts';
import type { CliIo } from '../../io.ts';
import type { ServedCalls } from '../client-tools.ts';

export interface ClusterCallsDeps {
  agent: string;
  /** A client of the gateway whose requests end with the signal. */
  gateway: (signal: AbortSignal) => Pick<GatewayUserClient, 'call' | 'lines'>;
  io: Pick<CliIo, 'error' | 'signal'>;
}

/** A call that the gateway has. */
interface SentCall {
  readonly receipt: UserMessageReceipt;
  /** Behind the last line that was read. */
  position: LinePosition;
}

/** The tools of an agent of a cluster, which its pod calls. */
export class ClusterCalls implements ServedCalls {
  readonly #deps: ClusterCallsDeps;
  /** The calls that wait for a decision, by key. */
  readonly #parked = new Map<string, SentCall>();

  constructor(deps: ClusterCallsDeps) {
    this.#deps = deps;
  }

  async offered({ session }: ClientConnection): Promise<readonly ToolDescriptor[]> {
    const { agent, gateway, io } = this.#deps;
    const query = new URLSearchParams({ session }).toString();
    const path = `agents/${encodeURIComponent(agent)}/callable-tools?${query}`;
    try {
      return listOf(await gateway(io.signal).call({ method: 'GET', path })).flatMap(descriptorIn);
    } catch (error) {
      // A gateway of an older release has no such route.
      if (isTemperError(error, 'TEMPER_NOT_FOUND')) return [];
      throw error;
    }
  }

  async invoke(
    tool: string,
    input: Json,
    { session }: ClientConnection,
    { signal, key }: CallOptions,
  ): Promise<ToolResult | ParkedCall> {
    try {
      const parked = this.#parked.get(key);
      this.#parked.delete(key);
      const sent = parked ?? (await this.#send(tool, input, session, key, signal));
      // An earlier message of the session is not decided about.
      const [request] = parked === undefined ? (sent.receipt.waitsFor ?? []) : [];
      const end = request === undefined ? await this.#end(tool, sent, signal) : { parked: request, tool };
      if ('parked' in end) this.#parked.set(key, sent);
      return end;
    } catch (error) {
      const code = isTemperError(error) ? error.code : 'TEMPER_INTERNAL';
      return failed(tool, { code, message: printable(messageOf(error, 1_000), 1_000) });
    }
  }

  async #send(tool: string, input: Json, session: string, key: string, signal: AbortSignal): Promise<SentCall> {
    const { agent, gateway, io } = this.#deps;
    const values = isJsonObject(input) ? input : {};
    const receipt = await sendToolCall(
      gateway(signal),
      { agent, tool, input: values, session, key },
      { ...io, signal },
    );
    return { receipt, position: { after: receipt.after, skip: 0 } };
  }

  async #end(tool: string, sent: SentCall, signal: AbortSignal): Promise<ToolResult | ParkedCall> {
    const { agent, gateway, io } = this.#deps;
    const { receipt } = sent;
    const followed = { gateway: gateway(signal), agent, receipt };
    for await (const line of messageLines(followed, { ...io, signal }, sent.position)) {
      sent.position = behind(line, sent.position);
      const request = requestIn(line, receipt.id);
      if (request !== undefined) return { parked: request, tool };
      if (line.kind !== 'event' && line.message === receipt.id) return resultIn(tool, line);
    }
    throw new TypeError('the lines of a message end with its answer');
  }
}

function requestIn(line: SessionStreamLine, message: string): string | undefined {
  if (line.kind !== 'event' || line.event.rootMessage !== message) return undefined;
  return line.event.type === 'turn-parked' ? line.event.requests[0] : undefined;
}

function resultIn(tool: string, line: Exclude<SessionStreamLine, { kind: 'event' }>): ToolResult {
  if (line.kind === 'failed') return failed(tool, messageFailure(line));
  const reply = parseCallReply(line.text);
  return reply.ok ? { ok: true, tool, output: reply.output, milliseconds: 0 } : failed(tool, reply.error);
}

function failed(tool: string, error: ToolFailure): ToolResult {
  return { ok: false, tool, error, milliseconds: 0 };
}

function descriptorIn(value: Json): ToolDescriptor[] {
  const isTool = isJsonObject(value) && textAt(value, ['name']) !== '' && isJsonObject(value['inputSchema']);
  return isTool ? [value as unknown as ToolDescriptor] : [];
}
