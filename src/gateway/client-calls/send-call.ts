import { callText, MAX_CALL_CHARACTERS } from '../../bus/message-call.ts';
import type { MessageCall } from '../../bus/port.ts';
import { builtInDescriptors } from '../../engine/built-in.ts';
import { compileToolSettings } from '../../engine/settings/tool-settings.ts';
import type { UserMessageReceipt } from '../../gateway-api/user-api.ts';
import { TemperError } from '../../lib/errors.ts';
import type { JsonObject } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';
import { assertInput } from '../../tools/input-check.ts';
import type { SchemaCompiler } from '../../tools/json-schema/compiler.ts';
import type { AgentState } from '../agent-state.ts';
import type { GatewayDeps } from '../deps.ts';
import { sendUserMessage, type UserMessageToSend } from '../users/messages.ts';
import { callableTools } from './callable-tools.ts';

export interface CallToSend extends Omit<UserMessageToSend, 'text' | 'call'> {
  readonly tool: string;
  readonly input: JsonObject;
}

/** A call in the inbox of the agent, and the tool that it found. */
interface AcceptedCall {
  readonly receipt: UserMessageReceipt;
  readonly tool: ToolDescriptor;
}

/**
 * Sends a call to the inbox of the agent, after the checks that need no pod. The pod makes them again. Throws TEMPER_TOOL_NOT_FOUND for a
 * tool that does not exist or that the agent may not call, TEMPER_TOOL_INPUT_INVALID, and what a message throws.
 */
export async function sendToolCall(
  state: AgentState,
  { tool: name, input, ...message }: CallToSend,
  { schemas, ...deps }: GatewayDeps & { schemas: SchemaCompiler },
): Promise<AcceptedCall> {
  const tool = (await callableTools(state, message.session, deps)).find((one) => one.name === name);
  if (tool === undefined) throw notFound(name);
  assertArguments(state, tool, input, schemas);
  const digest = tool.forged?.digest;
  const call: MessageCall = { tool: name, input, ...(digest === undefined ? {} : { digest }) };
  return { tool, receipt: await sendUserMessage(state, { ...message, text: callText(call), call }, deps) };
}

function assertArguments(
  { agent }: AgentState,
  tool: ToolDescriptor,
  input: JsonObject,
  schemas: SchemaCompiler,
): void {
  const size = JSON.stringify(input).length;
  if (size > MAX_CALL_CHARACTERS) {
    const message = `the arguments have ${size} characters as JSON, and a call takes ${MAX_CALL_CHARACTERS}; pass less`;
    throw new TemperError('TEMPER_TOOL_INPUT_INVALID', message);
  }
  const settings = compileToolSettings(agent.spec, builtInDescriptors(), schemas);
  assertInput(schemas, tool, settings.withDefaults(tool.name, input, { origin: 'Client' }));
}

function notFound(name: string): TemperError {
  return new TemperError(
    'TEMPER_TOOL_NOT_FOUND',
    `the agent has no tool "${printable(name, 80)}" that a program may call`,
  );
}
