import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import type { MessageDraft } from '../../bus/port.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { Decision, PolicyRequest } from '../../policy/types.ts';
import type { CallContext } from '../../tools/contract.ts';
import { sendTool } from './send-tool.ts';

const op: CallOptions = { signal: NEVER_ABORTED, deadline: Number.POSITIVE_INFINITY, key: 'call-1' };
const context: CallContext = {
  agent: 'a',
  namespace: 'n',
  session: 's-1',
  rootMessage: 'm-1',
  stack: [],
  origin: 'Agent' as const,
  op,
  invoke: () => Promise.reject(new Error('no nested calls in this test')),
};

function aTool(effect: Decision['effect'], alone = false, tainted = false) {
  const sent: { draft: MessageDraft; key: string }[] = [];
  const asked: PolicyRequest[] = [];
  const tool = sendTool({
    isTainted: () => tainted,
    decide: (_, request) => {
      asked.push(request);
      return { effect, rule: 'grant.messages', reason: 'receiver not granted', risk: 'low' };
    },
    ...(alone
      ? {}
      : {
          bus: {
            send: async (draft, { key }) => {
              sent.push({ draft, key });
              return { id: 'msg-7', duplicate: false };
            },
          },
        }),
  });
  return { tool, sent, asked };
}

describe('agent_send', () => {
  it('agent_send uses the session of the sender unless the call names another, and the key of the call', async () => {
    const { tool, sent, asked } = aTool('Allow');
    assert.deepEqual(await tool.call({ to: 'b', text: 'hello' }, context), { id: 'msg-7' });
    await tool.call({ to: 'b', text: 'hello', session: 's-9' }, context);
    assert.deepEqual(sent, [
      { draft: { to: 'b', session: 's-1', text: 'hello' }, key: 'call-1' },
      { draft: { to: 'b', session: 's-9', text: 'hello' }, key: 'call-1' },
    ]);
    assert.deepEqual(asked[0], { kind: 'Message', agent: 'b' });
  });

  it('agent_send carries the taint of its session', async () => {
    const { tool, sent } = aTool('Allow', false, true);
    await tool.call({ to: 'b', text: 'hello' }, context);
    assert.deepEqual(sent[0]?.draft, { to: 'b', session: 's-1', text: 'hello', tainted: true });
  });

  it('agent_send sends no message to a receiver that the policy denies or escalates', async () => {
    for (const effect of ['Deny', 'Escalate'] as const) {
      const { tool, sent } = aTool(effect);
      await assert.rejects(
        tool.call({ to: 'b', text: 'hello' }, context),
        (error) => isTemperError(error, 'TEMPER_POLICY_DENIED') && error.details['rule'] === 'grant.messages',
      );
      assert.deepEqual(sent, []);
    }
  });

  it('agent_send fails in a standalone run and for an invalid session id', async () => {
    await assert.rejects(aTool('Allow', true).tool.call({ to: 'b', text: 'x' }, context), (error) =>
      isTemperError(error, 'TEMPER_NOT_FOUND'),
    );
    await assert.rejects(aTool('Allow').tool.call({ to: 'b', text: 'x', session: '../x' }, context), (error) =>
      isTemperError(error, 'TEMPER_SESSION_INVALID'),
    );
  });
});
