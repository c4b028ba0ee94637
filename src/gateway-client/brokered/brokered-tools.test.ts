import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import type { BrokeredToolDefinition } from '../../gateway-api/brokered/brokered-api.ts';
import { systemClock } from '../../lib/clock.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import type { CallContext } from '../../tools/contract.ts';
import { remoteBrokeredTools } from './brokered-tools.ts';
import type { GatewayRequest } from '../gateway-client.ts';

const DEFINITION: BrokeredToolDefinition = {
  definition: `sha256:${'1'.repeat(64)}`,
  name: 'find',
  description: 'Finds.',
  inputSchema: { type: 'object' },
  category: 'web',
  action: 'comms:external',
  sideEffects: false,
  resultOrigin: 'Web',
};

describe('a tool that the gateway executes, in the pod', () => {
  const op = { signal: NEVER_ABORTED, deadline: systemClock.monotonic() + 60_000, key: 'call-1' };
  const call = async (answer: Json | undefined, input: Json = { text: 'a' }) => {
    const requests: GatewayRequest[] = [];
    const client = {
      async call(request: GatewayRequest) {
        requests.push(request);
        return answer;
      },
    };
    const [tool] = remoteBrokeredTools([DEFINITION], { client, clock: systemClock, deliveryToken: () => 'd1.x.y' });
    assert.deepEqual([tool?.descriptor.locality, tool?.descriptor.resultOrigin], ['Brokered', 'Web']);
    return { output: await tool?.call(input, { op } as CallContext), requests };
  };

  it('a call carries the definition that was decided about, and the time that is left', async () => {
    const { output, requests } = await call({ output: [1] });
    assert.deepEqual(output, [1]);
    const [{ path, op: sent, body } = {} as GatewayRequest] = requests;
    const { timeoutMs, ...rest } = body as { timeoutMs: number };
    assert.deepEqual([path, sent.key], ['/v1/tools/call', 'call-1']);
    assert.deepEqual(rest, {
      deliveryToken: 'd1.x.y',
      tool: 'find',
      definition: DEFINITION.definition,
      input: { text: 'a' },
    });
    assert.ok(timeoutMs > 0 && timeoutMs <= 60_000, String(timeoutMs));
  });

  it('the failure of the executed call is that of the tool', async () => {
    const failure = call({ error: { code: 'TEMPER_TOOL_TIMEOUT', message: 'too late' } });
    await assert.rejects(
      failure,
      (error) => isTemperError(error, 'TEMPER_TOOL_TIMEOUT') && error.message === 'too late',
    );
  });

  it('an answer of another form is an error of the gateway', async () => {
    for (const answer of [
      undefined,
      [],
      {},
      { error: { code: 'NO_SUCH_CODE', message: 'x' } },
      { error: { code: 'TEMPER_TIMEOUT' } },
    ])
      await assert.rejects(call(answer), (error) => isTemperError(error, 'TEMPER_GATEWAY_BAD_RESPONSE'));
  });

  it('arguments that are no object are not sent', async () => {
    await assert.rejects(call({ output: 1 }, 'text'), (error) => isTemperError(error, 'TEMPER_TOOL_INPUT_INVALID'));
  });
});
