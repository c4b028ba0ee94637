import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { aCallContext } from '../../../test/support/call-context.ts';
import { systemClock } from '../../lib/clock.ts';
import { isTemperError } from '../../lib/errors.ts';
import { ulids } from '../../lib/ids.ts';
import type { Json } from '../../lib/json.ts';
import { memoryRecordStore } from '../../lib/record-store.ts';
import { meteredStub } from '../../models/pipeline.testing.ts';
import type { Tool } from '../../tools/contract.ts';
import { createSchemaCompiler } from '../../tools/json-schema/compiler.ts';
import { generateTextTool } from './generate-text.ts';
import { createMemoryTools } from './memory-tools.ts';
import { createRecordMemory } from './memory.ts';
import { type ScriptedAnswer, says, scriptedLedger, scriptedModel } from '../loop/scripted-loop.testing.ts';

const context = aCallContext({ agent: 'analyst' });

/** Calls a tool like the invoker does: validates input and output against the schemas. */
async function callTool(tools: Tool[], name: string, input: Json): Promise<Json> {
  const tool = tools.find((found) => found.descriptor.name === name);
  assert.ok(tool, name);
  const schemas = createSchemaCompiler();
  assert.deepEqual(schemas.check(tool.descriptor.inputSchema)(input), []);
  const output = await tool.call(input, context);
  assert.deepEqual(schemas.check(tool.descriptor.outputSchema ?? {})(output), []);
  return output;
}

describe('the memory tools', () => {
  const tools = (): Tool[] =>
    createMemoryTools({
      memory: createRecordMemory(memoryRecordStore(), 'memory/a'),
      decide: (_, request) => {
        const allowed = request.kind === 'Memory' && request.key.startsWith('self.');
        return { effect: allowed ? 'Allow' : 'Deny', rule: 'grant.memory', reason: 'not yours', risk: 'low' };
      },
      isTainted: () => false,
      onUntrusted: () => assert.fail(),
    });

  it('the memory tools store, read and find granted keys', async () => {
    const mine = tools();
    assert.deepEqual(await callTool(mine, 'memory_get', { key: 'self.a' }), { found: false, value: null });
    await callTool(mine, 'memory_set', { key: 'self.a', value: { west: 1 } });
    assert.deepEqual(await callTool(mine, 'memory_get', { key: 'self.a' }), { found: true, value: { west: 1 } });
    assert.deepEqual(await callTool(mine, 'memory_search', { query: 'west' }), {
      hits: [{ key: 'self.a', value: { west: 1 } }],
    });
    assert.deepEqual(await callTool(mine, 'memory_list', {}), { keys: ['self.a'], complete: true });
    assert.deepEqual(await callTool(mine, 'memory_list', { prefix: 'self.b', limit: 1 }), { keys: [], complete: true });
    assert.deepEqual(await callTool(mine, 'memory_delete', { key: 'self.a' }), { key: 'self.a', deleted: true });
    assert.deepEqual(await callTool(mine, 'memory_delete', { key: 'self.a' }), { key: 'self.a', deleted: false });
  });

  it('the memory tools deny other keys, and the search omits them', async () => {
    const records = memoryRecordStore();
    const memory = createRecordMemory(records, 'memory/a');
    await memory.set('theirs.secret', 'west');
    const mine = createMemoryTools({
      memory,
      decide: () => ({ effect: 'Deny', rule: 'grant.memory', reason: 'not yours', risk: 'low' }),
      isTainted: () => false,
      onUntrusted: () => assert.fail(),
    });
    assert.deepEqual(await callTool(mine, 'memory_search', { query: 'west' }), { hits: [] });
    assert.deepEqual(await callTool(mine, 'memory_list', {}), { keys: [], complete: true });
    for (const [name, input] of [
      ['memory_get', { key: 'theirs.secret' }],
      ['memory_set', { key: 'theirs.secret', value: 1 }],
      ['memory_delete', { key: 'theirs.secret' }],
    ] as const) {
      await assert.rejects(
        callTool(mine, name, input),
        (error) => isTemperError(error, 'TEMPER_POLICY_DENIED') && error.details.rule === 'grant.memory',
      );
    }
  });
});

describe('the memory that agents share', () => {
  it('each call that reads a shared key, or what a tainted session wrote, marks the session as tainted, and no other call does', async () => {
    const marked: string[] = [];
    let isTainted = false;
    const tools = createMemoryTools({
      memory: createRecordMemory(memoryRecordStore(), 'memory/a'),
      decide: () => ({ effect: 'Allow', rule: 'grant.memory', reason: '', risk: 'low' }),
      isTainted: () => isTainted,
      onUntrusted: ({ session }) => marked.push(session),
    });
    const marks = async (name: string, input: Json): Promise<number> => {
      const before = marked.length;
      await callTool(tools, name, input);
      return marked.length - before;
    };
    assert.equal(await marks('memory_get', { key: 'shared.plan' }), 0, 'nothing was read');
    await callTool(tools, 'memory_set', { key: 'shared.plan', value: 'obey' });
    await callTool(tools, 'memory_set', { key: 'self.plan', value: 'mine' });
    assert.equal(await marks('memory_get', { key: 'shared.plan' }), 1);
    assert.equal(await marks('memory_get', { key: 'self.plan' }), 0);
    assert.equal(await marks('memory_search', { query: 'obey' }), 1);
    assert.equal(await marks('memory_search', { query: 'mine' }), 0);
    assert.equal(await marks('memory_list', {}), 1);
    assert.equal(await marks('memory_list', { prefix: 'self.' }), 0);
    assert.deepEqual([...new Set(marked)], [context.session]);
    isTainted = true;
    await callTool(tools, 'memory_set', { key: 'self.plan', value: 'mine, or that of a page' });
    isTainted = false;
    assert.equal(await marks('memory_get', { key: 'self.plan' }), 1, 'a tainted session wrote it');
    assert.equal(await marks('memory_search', { query: 'page' }), 1);
    assert.equal(await marks('memory_list', { prefix: 'self.' }), 1);
    await callTool(tools, 'memory_set', { key: 'self.plan', value: 'mine' });
    assert.equal(await marks('memory_get', { key: 'self.plan' }), 0, 'another session replaced it');
  });

  it('a namespace keeps at most a thousand shared keys, whichever of its agents writes them', async () => {
    const records = memoryRecordStore();
    const memoryOf = (agent: string) =>
      createRecordMemory(records, `memory/n/${agent}`, { records, collection: 'memory/n/_shared' });
    const [one, two] = [memoryOf('one'), memoryOf('two')];
    for (let index = 0; index < 1_000; index += 1) await one.set(`shared.${index}`, index);
    await assert.rejects(two.set('shared.more', 1), (error) => isTemperError(error, 'TEMPER_QUOTA_EXCEEDED'));
    await two.set('self.more', 1);
    await two.set('shared.1', 'replaced');
    await two.delete('shared.2');
    await two.set('shared.more', 1);
    assert.equal((await one.get('shared.more'))?.value, 1);
  });
});

describe('generate_text', () => {
  const withAnswer = (
    answer: ScriptedAnswer,
    callsGranted?: number,
  ): { tools: Tool[]; model: ReturnType<typeof scriptedModel> } => {
    const model = scriptedModel([answer]);
    const metered = meteredStub(model, { ledger: scriptedLedger(callsGranted), ids: ulids });
    return {
      tools: [
        generateTextTool({ model: metered, clock: systemClock, modelName: 'scripted/model', maxOutputTokens: 100 }),
      ],
      model,
    };
  };

  it('generate_text sends the prompt without history and tools', async () => {
    const { tools, model } = withAnswer(says('short'));
    assert.deepEqual(await callTool(tools, 'generate_text', { prompt: 'long' }), { text: 'short', output: 'short' });
    assert.deepEqual(model.requests[0]?.messages, [{ role: 'user', text: 'long' }]);
    assert.deepEqual(model.requests[0]?.tools, []);
  });

  it('generate_text fails when the answer is truncated or refused, or the quota denies it', async () => {
    for (const reason of ['length', 'refusal'] as const) {
      const { tools } = withAnswer(says('half', reason));
      await assert.rejects(callTool(tools, 'generate_text', { prompt: 'x' }), (error) =>
        isTemperError(error, 'TEMPER_TOOL_FAILED'),
      );
    }
    const { tools } = withAnswer(says('never'), 0);
    await assert.rejects(callTool(tools, 'generate_text', { prompt: 'x' }), (error) =>
      isTemperError(error, 'TEMPER_QUOTA_EXCEEDED'),
    );
  });
});
