import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { sha256 } from '../../lib/canonical.ts';
import type { JsonObject } from '../../lib/json.ts';
import { memoryRecordStore } from '../../lib/record-store.ts';
import { systemClock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import { calls, says, scriptedInvoker, scriptedLoop, WaitsFor } from '../loop/scripted-loop.testing.ts';
import { createRecordSessionStore } from '../session/session-store.ts';
import { MAX_OUTPUT_CHARACTERS, parseCallReply } from './call-reply.ts';

const sumOf = (input: JsonObject = { values: [1, 2] }) => ({ call: { tool: 'sum', input } });

describe('a message that is a call', () => {
  it('its tool is called without the model, and the reply is the output as JSON', async () => {
    const origins: string[] = [];
    const { send, model, events } = scriptedLoop([says('no')], {
      sum: (input, { origin }) => {
        origins.push(origin);
        return { sum: 3, of: input };
      },
    });
    const { reply, finishReason } = await send('a call', { message: 'm-1', ...sumOf() });
    assert.deepEqual(JSON.parse(reply), { ok: true, output: { sum: 3, of: { values: [1, 2] } } });
    assert.deepEqual([finishReason, origins, model.requests], ['complete', ['Client'], []]);
    assert.deepEqual(
      events.flatMap((event) => (event.type === 'tool-result' ? [event.tool, event.ok] : [])),
      ['sum', true],
    );
  });

  it('the next message of the session has the call and its result in a valid history', async () => {
    const { send, model } = scriptedLoop([says('It was three.')], { sum: () => 3 });
    await send('a call', { message: 'm-1', ...sumOf() });
    await send('a second call', { message: 'm-2', ...sumOf() });
    assert.equal((await send('What was it?', { message: 'm-3' })).reply, 'It was three.');
    const [request] = model.requests;
    const roles = request?.messages.map(({ role }) => role);
    assert.deepEqual(roles, ['user', 'assistant', 'tool', 'user', 'assistant', 'tool', 'user']);
    const ids = request?.messages.flatMap((item) => (item.role === 'tool' ? [item.toolCallId] : []));
    assert.equal(new Set(ids).size, 2, 'no two calls of a session have one id');
  });

  it('a call between the turns of a model leaves its pending calls alone', async () => {
    const records = memoryRecordStore();
    const tools = { sum: () => 3 };
    const first = scriptedLoop([calls(['sum', {}, 'client_1']), says('done')], tools, { records });
    await first.send('go', { message: 'm-1' });
    const second = await scriptedLoop([], tools, { records }).send('a call', { message: 'm-2', ...sumOf() });
    assert.deepEqual(parseCallReply(second.reply), { ok: true, output: 3 });
  });

  it('a failed call and one of a tool that does not exist are replies with their codes', async () => {
    const { send } = scriptedLoop([], {
      sum: () => {
        throw new TemperError('TEMPER_POLICY_DENIED', 'not you', { details: { rule: 'agents.denied' } });
      },
    });
    const denied = parseCallReply((await send('a call', { message: 'm-1', ...sumOf() })).reply);
    const error = { code: 'TEMPER_POLICY_DENIED', message: 'not you', rule: 'agents.denied' };
    assert.deepEqual(denied, { ok: false, error });
    const unknown = await send('a call', { message: 'm-2', call: { tool: 'other', input: {} } });
    assert.match(unknown.reply, /"ok":false.*TEMPER_TOOL_NOT_FOUND/);
  });

  it('a call that waits for a decision runs once after it, with its key', async () => {
    const records = memoryRecordStore();
    const keys: string[] = [];
    let isApproved = false;
    const tools: Parameters<typeof scriptedLoop>[1] = {
      sum: (_, __, { key }) => {
        keys.push(key);
        if (!isApproved) throw new WaitsFor('apr-1');
        return 3;
      },
    };
    const attempt = () => scriptedLoop([], tools, { records }).send('a call', { message: 'm-1', ...sumOf() });
    assert.deepEqual((await attempt()).parked, ['apr-1']);
    isApproved = true;
    assert.deepEqual(parseCallReply((await attempt()).reply), { ok: true, output: 3 });
    assert.deepEqual(parseCallReply((await attempt()).reply), { ok: true, output: 3 }, 'redelivered after its result');
    assert.equal(keys.length, 2);
    assert.equal(new Set(keys).size, 1);
  });

  it('a process that ends before the result is stored repeats the call with its key, and stores one call', async () => {
    const records = memoryRecordStore();
    const keys: string[] = [];
    const tools: Parameters<typeof scriptedLoop>[1] = {
      sum: (_, __, { key }: CallOptions) => {
        if (keys.push(key) === 1) throw new Error('the process ends');
        return 3;
      },
    };
    const attempt = () => scriptedLoop([], tools, { records }).send('a call', { message: 'm-1', ...sumOf() });
    await assert.rejects(attempt(), /the process ends/);
    assert.deepEqual(parseCallReply((await attempt()).reply), { ok: true, output: 3 });
    assert.equal(new Set(keys).size, 1);
    const { items } = await createRecordSessionStore(records, systemClock, { agent: 'a', namespace: 'n' }).load('s-1');
    assert.deepEqual(
      items.map(({ role }) => role),
      ['user', 'assistant', 'tool'],
    );
  });

  it('an output beyond the limit is refused and not cut', async () => {
    const { send } = scriptedLoop([], {
      sum: () => 'x'.repeat(MAX_OUTPUT_CHARACTERS),
      escaped: () => '\u0001'.repeat(MAX_OUTPUT_CHARACTERS / 10),
      quoted: () => '"'.repeat(MAX_OUTPUT_CHARACTERS / 2 - 1),
    });
    for (const tool of ['sum', 'escaped', 'quoted']) {
      const { reply } = await send('a call', { message: `m-${tool}`, call: { tool, input: {} } });
      const parsed = parseCallReply(reply);
      if (tool === 'escaped') assert.ok(parsed.ok, reply.slice(0, 200));
      else assert.ok(!parsed.ok && parsed.error.code === 'TEMPER_TOOL_OUTPUT_INVALID', reply.slice(0, 200));
    }
  });

  it('a forged tool is called by its digest, and its name in the session has none', async () => {
    const digest = sha256('tool');
    const names: string[] = [];
    const invoker = scriptedInvoker({ sum: () => 3 });
    const records = memoryRecordStore();
    const { send } = scriptedLoop(
      [],
      {},
      {
        records,
        invoker: {
          ...invoker,
          invokeOrPark: (name, ...call) => {
            names.push(name);
            return invoker.invokeOrPark('sum', ...call);
          },
        },
      },
    );
    await send('a call', { message: 'm-1', call: { tool: 'sum', digest, input: {} } });
    assert.deepEqual(names, [`sum@${digest}`]);
    const { items } = await createRecordSessionStore(records, systemClock, { agent: 'a', namespace: 'n' }).load('s-1');
    assert.ok(!JSON.stringify(items).includes(digest));
  });
});

describe('the reply of a pod to a call', () => {
  it('a text that is no result of a call is a failed call', () => {
    for (const text of [
      '',
      'done',
      '[]',
      '{}',
      '{"ok":true}',
      '{"ok":1,"output":1}',
      '{"ok":false,"error":{"code":"X"}}',
    ]) {
      const reply = parseCallReply(text);
      assert.ok(!reply.ok && reply.error.code === 'TEMPER_TOOL_OUTPUT_INVALID', text);
    }
  });

  it('the text of an error cannot control a terminal', () => {
    const error = { code: 'TEMPER_TOOL_FAILED', message: 'a\u001b[2Jb', rule: 7 };
    const reply = parseCallReply(JSON.stringify({ ok: false, error }));
    assert.ok(!reply.ok && !reply.error.message.includes('\u001b') && reply.error.rule === undefined);
  });
});
