import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Json } from '../../lib/json.ts';
import type { ParkedCall, ToolResult } from '../../tools/contract.ts';
import { ClientTools } from './client-tools.ts';

interface Tried {
  tools: ClientTools;
  /** The keys of the calls. */
  keys: string[];
}

/** Tools whose calls have these outcomes, one after another. */
function toolsWith(...outcomes: (Json | ParkedCall | Error)[]): Tried {
  const keys: string[] = [];
  let count = 0;
  const tools = new ClientTools({
    calls: {
      offered: () => [],
      async invoke(tool, _input, _client, { key }): Promise<ToolResult | ParkedCall> {
        keys.push(key);
        const outcome = outcomes[keys.length - 1] ?? null;
        if (outcome instanceof Error) throw outcome;
        if (typeof outcome === 'object' && outcome !== null && 'parked' in outcome) return outcome as ParkedCall;
        return { ok: true, tool, output: outcome, milliseconds: 1 };
      },
    },
    client: { session: 's', connection: 'c' },
    agent: { ask: async () => ({ text: 'asked', isError: false }) },
    now: () => 0,
    newId: () => `key-${++count}`,
    howToDecide: (request) => `temper approve ${request}`,
  });
  return { tools, keys };
}

const call = { signal: new AbortController().signal, report: () => undefined };
const parked: ParkedCall = { parked: 'apr-1', tool: 'send' };

describe('the calls of an MCP client', () => {
  it('the same call again has the key of the call that waits, and a call after its end has a new one', async () => {
    const { tools, keys } = toolsWith(parked, parked, 'sent', 'sent');
    const first = await tools.call('send', { to: 'kim', text: 'hi' }, call);
    assert.deepEqual([first.code, first.approvalRequest], ['TEMPER_APPROVAL_PENDING', 'apr-1']);
    assert.match(first.text, /temper approve apr-1/);
    await tools.call('send', { text: 'hi', to: 'kim' }, call);
    assert.equal((await tools.call('send', { to: 'kim', text: 'hi' }, call)).text, 'sent');
    await tools.call('send', { to: 'kim', text: 'hi' }, call);
    assert.deepEqual(keys, ['key-1', 'key-1', 'key-1', 'key-2']);
  });

  it('a call with other arguments does not have the key of the call that waits', async () => {
    const { tools, keys } = toolsWith(parked, 'sent', 'sent');
    await tools.call('send', { to: 'kim' }, call);
    await tools.call('send', { to: 'max' }, call);
    await tools.call('write', { to: 'kim' }, call);
    assert.deepEqual(keys, ['key-1', 'key-2', 'key-3']);
  });

  it('an object is a value beside its text, a text is itself, and an output beyond the limit is refused', async () => {
    const { tools } = toolsWith({ n: 1 }, 'text', 'x'.repeat(1_000_001));
    assert.deepEqual(await tools.call('a', {}, call), { text: '{"n":1}', isError: false, structured: { n: 1 } });
    assert.deepEqual(await tools.call('b', {}, call), { text: 'text', isError: false });
    assert.equal((await tools.call('c', {}, call)).code, 'TEMPER_TOOL_OUTPUT_INVALID');
  });

  it('an error of the engine is a failed call', async () => {
    const { tools } = toolsWith(new TypeError('no disk'));
    assert.deepEqual(await tools.call('a', {}, call), {
      text: 'TEMPER_INTERNAL: no disk',
      isError: true,
      code: 'TEMPER_INTERNAL',
    });
    await tools.idle();
  });

  it('ask_agent asks the agent, whatever tools have this name', async () => {
    const { tools, keys } = toolsWith();
    assert.equal((await tools.call('ask_agent', {}, call)).text, 'asked');
    assert.deepEqual(keys, []);
  });
});
