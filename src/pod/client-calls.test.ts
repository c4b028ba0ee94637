import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type CallReply, parseCallReply } from '../agent/call/call-reply.ts';
import type { MessageCall } from '../bus/port.ts';
import { aMessage } from '../gateway-client/inbox.testing.ts';
import { aSharedTool } from '../tempering/tempering.testing.ts';
import { PodFixture, quickstartAssignment } from './pod.testing.ts';

const DOUBLE = aSharedTool('double_it');
const TOOL = { tool: 'double_it', digest: DOUBLE.digest };

async function resultOf({ gateway }: PodFixture, call: MessageCall, session = 's-1'): Promise<CallReply> {
  const answer = await gateway.inbox.add(aMessage({ session, text: 'a call', call }));
  assert.ok(answer.action === 'ack', JSON.stringify(answer));
  return parseCallReply(answer.reply);
}

describe('a pod with calls of programs of users', { timeout: 600_000 }, () => {
  it('a call is made in the sandbox with every check and without the model, for an agent in code mode too', async () => {
    await using bench = await PodFixture.open({ rules: [{ answer: { text: 'the model' } }] });
    const { gateway } = bench;
    gateway.promoted.push(DOUBLE);
    bench.sandbox();
    bench.agent();
    const assignment = await quickstartAssignment();
    await gateway.assign(assignment);
    const doubled = { ok: true, output: { result: 42 } };
    assert.deepEqual(await resultOf(bench, { ...TOOL, input: { value: 21 } }), doubled);
    const codeOf = async (call: MessageCall): Promise<string> => {
      const result = await resultOf(bench, call, 's-2');
      return result.ok ? JSON.stringify(result) : result.error.code;
    };
    assert.equal(await codeOf({ ...TOOL, input: { value: 'many' } }), 'TEMPER_TOOL_INPUT_INVALID');
    const { digest } = aSharedTool('another');
    assert.equal(await codeOf({ ...TOOL, digest, input: { value: 21 } }), 'TEMPER_TOOL_NOT_FOUND');
    assert.equal(await codeOf({ tool: 'forge_tool', input: {} }), 'TEMPER_TOOL_NOT_FOUND');
    assert.equal(await codeOf({ tool: 'no_such_tool', input: {} }), 'TEMPER_TOOL_NOT_FOUND');
    assert.deepEqual(bench.replay.requests, [], 'no model was asked');
    const origins = new Set(gateway.audit.map(({ facts }) => facts['origin']));
    assert.deepEqual([...origins], ['Client']);

    const { agent } = assignment;
    const spec = { ...agent.spec, invocation: 'Code' as const };
    await gateway.assign({ ...assignment, version: '2', agent: { ...agent, spec } });
    assert.deepEqual(await resultOf(bench, { ...TOOL, input: { value: 21 } }, 's-3'), doubled);
    assert.deepEqual(bench.replay.requests, []);
    const asked = await gateway.inbox.add(aMessage({ session: 's-1', text: 'What was it?' }));
    assert.ok(asked.action === 'ack' && asked.reply === 'the model', JSON.stringify(asked));
  });
});
