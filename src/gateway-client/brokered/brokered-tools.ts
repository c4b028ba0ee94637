import { type BrokeredCallRequest, type BrokeredToolDefinition } from '../../gateway-api/brokered/brokered-api.ts';
import { malformedResponse, requireObject, requireText } from '../../gateway-api/response-parsing.ts';
import { POD_API_PATHS } from '../../gateway-api/pod-api.ts';
import { type CallOptions, remainingMs } from '../../lib/call-options.ts';
import type { Clock } from '../../lib/clock.ts';
import { isErrorCode } from '../../lib/error-codes.ts';
import { TemperError } from '../../lib/errors.ts';
import { isJsonObject, type Json, member } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import type { Tool, ToolDescriptor } from '../../tools/contract.ts';
import type { GatewayClient } from '../gateway-client.ts';

export interface RemoteBrokeredToolsOptions {
  client: Pick<GatewayClient, 'call'>;
  clock: Clock;
  deliveryToken: () => string;
  /** Receives the signatures of the answers. */
  onAnswerSignature?: (signature: string) => void;
}

const MAX_MESSAGE = 2_000;

/** The tools that the gateway executes. The gateway decides about each call itself, with the same policy. */
export function remoteBrokeredTools(
  definitions: readonly BrokeredToolDefinition[],
  options: RemoteBrokeredToolsOptions,
): Tool[] {
  return definitions.map(({ definition, ...described }) => {
    const descriptor: ToolDescriptor = { ...described, locality: 'Brokered' };
    return {
      descriptor,
      async call(input, { op }) {
        const { name } = descriptor;
        if (!isJsonObject(input)) throw new TemperError('TEMPER_TOOL_INPUT_INVALID', `"${name}" takes an object`);
        const timeoutMs = timeOf(op, options.clock);
        const body: BrokeredCallRequest = {
          deliveryToken: options.deliveryToken(),
          tool: name,
          definition,
          input,
          timeoutMs,
        };
        const { client, onAnswerSignature } = options;
        const signed = onAnswerSignature === undefined ? {} : { onAnswerSignature };
        return outputIn(
          await client.call({ method: 'POST', path: POD_API_PATHS.brokeredCalls, body, op, timeoutMs, ...signed }),
        );
      },
    };
  });
}

/** What the call has left, in milliseconds. */
export function timeOf(op: CallOptions, clock: Clock): number {
  return Math.max(1, Math.min(86_400_000, Math.ceil(remainingMs(op, clock))));
}

/** The output; throws the failure that the gateway reports. */
export function outputIn(answer: Json | undefined): Json {
  const result = requireObject(answer, 'result');
  const output = member(result, 'output');
  if (output !== undefined) return output;
  const error = requireObject(result['error'], 'result.error');
  const { code } = error;
  if (!isErrorCode(code)) throw malformedResponse('result.error.code');
  throw new TemperError(code, printable(requireText(error, 'message', 'result.error'), MAX_MESSAGE));
}
