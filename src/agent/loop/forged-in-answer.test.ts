import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { TemperError } from '../../lib/errors.ts';
import type { ModelMessage } from '../../models/port.ts';
import type { Invoker } from '../../tools/contract.ts';
import { calls, says, scriptedInvoker, scriptedLoop, type ScriptedTool } from './scripted-loop.testing.ts';
import { createTaintTracker } from './taint-tracker.ts';

const resultsIn = (messages: readonly ModelMessage[] | undefined): string[] =>
  (messages ?? []).flatMap((message) => (message.role === 'tool' ? [message.text] : []));

describe('an answer that forges a tool and calls it', () => {
  it('a call after forge_tool in the same answer waits for it and calls the new tool', async () => {
    const ended: string[] = [];
    const tools: Record<string, ScriptedTool> = {
      early() {
        ended.push('early');
        return 'before';
      },
      async forge_tool(input) {
        await new Promise((resolve) => setImmediate(resolve));
        const { name } = input as { name: string };
        tools[name] = () => {
          ended.push(name);
          return `${name} answers`;
        };
        ended.push('forge_tool');
        return { tool: name };
      },
    };
    const answer = calls(
      ['early', {}, 'c1'],
      ['forge_tool', { name: 'ant' }, 'c2'],
      ['ant', {}, 'c3'],
      ['forge_tool', { name: 'bee' }, 'c4'],
      ['bee', {}, 'c5'],
    );
    const { send, model } = scriptedLoop([answer, says('done')], tools);
    const { toolCalls } = await send('go');
    assert.equal(toolCalls, 5);
    assert.deepEqual(resultsIn(model.requests[1]?.messages), [
      '"before"',
      '{"tool":"ant"}',
      '"ant answers"',
      '{"tool":"bee"}',
      '"bee answers"',
    ]);
    // A forge also waits for the calls that wait for the forge before it, and no call waits for a later one.
    assert.deepEqual(ended, ['early', 'forge_tool', 'ant', 'forge_tool', 'bee']);
  });

  it('drop_tool waits for the calls before it, and the calls after it wait for drop_tool', async () => {
    const tools: Record<string, ScriptedTool> = {
      async ant() {
        await new Promise((resolve) => setImmediate(resolve));
        return 'ant' in tools ? 'still there' : 'gone';
      },
      async drop_tool() {
        await new Promise((resolve) => setImmediate(resolve));
        delete tools.ant;
        return 'dropped';
      },
      forge_tool: () => ('ant' in tools ? 'name taken' : 'name free'),
    };
    const answer = calls(['ant', {}, 'c1'], ['drop_tool', { name: 'ant' }, 'c2'], ['forge_tool', {}, 'c3']);
    const { send, model } = scriptedLoop([answer, says('done')], tools);
    await send('go');
    assert.deepEqual(resultsIn(model.requests[1]?.messages), ['"still there"', '"dropped"', '"name free"']);
  });

  it('a call that waits for forge_tool gets its own result when the forge is refused', async () => {
    const refuse = (): never => {
      throw new TemperError('TEMPER_FORGE_STATIC', 'no');
    };
    const answer = calls(['forge_tool', {}, 'c1'], ['ant', {}, 'c2']);
    const { send, model } = scriptedLoop([answer, says('done')], { forge_tool: refuse });
    await send('go');
    const codes = resultsIn(model.requests[1]?.messages).map(
      (text) => (JSON.parse(text) as { error: { code: string } }).error.code,
    );
    assert.deepEqual(codes, ['TEMPER_FORGE_STATIC', 'TEMPER_TOOL_NOT_FOUND']);
  });

  it('the first use of a web tool that the same answer forged taints the session', async () => {
    const tools: Record<string, ScriptedTool> = {
      forge_tool() {
        tools.page = () => 'from outside';
        return 'registered';
      },
    };
    const taint = createTaintTracker();
    const answer = calls(['forge_tool', {}, 'c1'], ['page', {}, 'c2']);
    const scripted = scriptedInvoker(tools);
    const invoker: Invoker = {
      ...scripted,
      visible: (caller) =>
        scripted.visible(caller).map((tool) => (tool.name === 'page' ? { ...tool, category: 'web' } : tool)),
    };
    const { send } = scriptedLoop([answer, says('done')], tools, { taint, invoker });
    await send('go');
    assert.equal(taint.has('s-1'), true);
  });
});
