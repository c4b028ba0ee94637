import type { Json } from '../../lib/json.ts';
import { TemperError } from '../../lib/errors.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import { printable } from '../../lib/printable.ts';
import type { CallerContext, Invoker, ParkedCall, ToolDescriptor, ToolResult } from '../../tools/contract.ts';
import { isForModelOnly } from '../built-in.ts';
import type { LoopGuards } from './loop-guards.ts';

/** A program of a user that calls tools in a session. */
export interface ClientConnection {
  session: string;
  /** Identifies the connection; the root message of its calls. */
  connection: string;
}

/** The calls that programs of users make in place of the model of the agent. */
export interface ClientCalls {
  /** The tools that a program of a user may call in the session. */
  offered(client: ClientConnection): readonly ToolDescriptor[];
  /**
   * Calls one tool, with all checks. All calls of one connection count as one message in the evidence about tools. A call that needs an
   * approval is parked: repeat it with the same `op.key` after the decision.
   */
  invoke(tool: string, input: Json, client: ClientConnection, op: CallOptions): Promise<ToolResult | ParkedCall>;
}

export function createClientCalls(
  agent: Pick<CallerContext, 'agent' | 'namespace'>,
  { invoker, guards }: { invoker: Invoker; guards: LoopGuards },
): ClientCalls {
  const callerOf = ({ session, connection: rootMessage }: ClientConnection): CallerContext => ({
    ...agent,
    session,
    rootMessage,
    stack: [],
    origin: 'Client',
  });
  return {
    offered: (client) => invoker.visible(callerOf(client)).filter(({ name }) => !isForModelOnly(name)),
    async invoke(tool, input, client, op) {
      if (isForModelOnly(tool.split('@', 1)[0] ?? tool)) return notForClients(tool);
      return guards.withGuard(client.connection, () => invoker.invokeOrPark(tool, input, callerOf(client), op));
    },
  };
}

/** Throws TEMPER_TOOL_NOT_FOUND for a tool that works for the model. */
export function assertForClients(name: string): void {
  if (!isForModelOnly(name)) return;
  const { code, message } = notForClients(name).error;
  throw new TemperError(code, message);
}

function notForClients(name: string): Extract<ToolResult, { ok: false }> {
  const tool = printable(name, 80);
  const message = `"${tool}" is for the model of the agent only; send the agent a message, or call a listed tool`;
  return { ok: false, tool, error: { code: 'TEMPER_TOOL_NOT_FOUND', message }, milliseconds: 0 };
}
