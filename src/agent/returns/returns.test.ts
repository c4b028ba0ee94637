import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import { createSchemaCompiler } from '../../tools/json-schema/compiler.ts';
import type { AgentHooks } from '../hooks/agent-hooks.ts';
import type { HookDirective } from '../hooks/hook-event.ts';
import { calls, says, type ScriptedAnswer, scriptedLoop } from '../loop/scripted-loop.testing.ts';
import { requiredValue } from './finish.ts';

const SCHEMA = JSON.stringify({
  type: 'object',
  properties: { count: { type: 'integer', minimum: 0 } },
  required: ['count'],
  additionalProperties: false,
});
const RETURNS = requiredValue(SCHEMA, createSchemaCompiler());

function returningLoop(answers: ScriptedAnswer[], deps: Parameters<typeof scriptedLoop>[2] = {}) {
  return scriptedLoop(answers, { look: () => 7 }, { returns: RETURNS, ...deps });
}

/** Hooks that give the directive at the first end of a turn. */
function endingWith(directive: HookDirective): AgentHooks {
  let isGiven = false;
  return {
    has: () => true,
    async ask({ type }) {
      if (type !== 'turn-end' || isGiven) return undefined;
      isGiven = true;
      return directive;
    },
    beforeCall: async () => undefined,
    afterCall: async () => undefined,
  };
}

describe('spec.returns', () => {
  it('a schema that is no JSON, no object or unsafe is refused by name', () => {
    for (const [text, message] of [
      ['{', /spec\.returns is not JSON/],
      ['[]', /"type": "object"/],
      ['{"type":"array"}', /"type": "object"/],
      ['{"type":"object","properties":{"a":{"type":"nothing"}}}', /spec\.returns/],
      ['{"type":"object","properties":{"a":{"$ref":"https://example.com/schema.json"}}}', /spec\.returns/],
    ] as const) {
      assert.throws(
        () => requiredValue(text, createSchemaCompiler()),
        (error) => isTemperError(error, 'TEMPER_MANIFEST_INVALID') && message.test(error.message),
        text,
      );
    }
  });

  it('a value that is too large for a reply is refused', () => {
    const open = requiredValue('{"type":"object"}', createSchemaCompiler());
    const verdict = open.check({ text: 'x'.repeat(100_000) });
    assert.match(verdict.accepted ? '' : verdict.problem, /100011 characters/);
  });
});

describe('an agent that returns a value', () => {
  it('the model gets the tool finish with the schema, and its arguments are the reply', async () => {
    const { send, model, events } = returningLoop([calls(['look', {}]), calls(['finish', { count: 7 }]), says('more')]);
    const { reply, format, finishReason } = await send('how many?');
    assert.deepEqual([reply, format, finishReason], ['{"count":7}', 'json', 'complete']);
    assert.equal(model.requests.length, 2);
    const tool = model.requests[0]?.tools.find(({ name }) => name === 'finish');
    assert.deepEqual(tool?.inputSchema, JSON.parse(SCHEMA));
    const end = events.at(-1);
    assert.ok(end?.type === 'session-end' && end.format === 'json' && end.reply === '{"count":7}');
  });

  it('a value that breaks the schema is an error of the call, and the model may try again', async () => {
    const { send, model } = returningLoop([calls(['finish', { count: -1 }]), calls(['finish', { count: 1 }])]);
    assert.equal((await send('go')).reply, '{"count":1}');
    const result = model.requests[1]?.messages.at(-1);
    assert.ok(result?.role === 'tool' && result.isError);
    assert.match(result.text, /TEMPER_TOOL_INPUT_INVALID.*count must be >= 0/);
  });

  it('an answer without a value is followed by a reminder that names the violation', async () => {
    const { send, model } = returningLoop([
      calls(['finish', { count: 'seven' }]),
      says('There are seven.'),
      says('Really.'),
      calls(['finish', { count: 7 }]),
    ]);
    assert.equal((await send('go')).reply, '{"count":7}');
    const [, , first, second] = model.requests.map(({ messages }) => messages.at(-1)?.text ?? '');
    assert.match(first ?? '', /no result\. The last value was refused: count must be integer\. Call the tool finish/);
    assert.match(second ?? '', /no result\. Call the tool finish/);
  });

  it('a text that is an acceptable value counts, and another JSON text does not', async () => {
    const { send, model } = returningLoop([says('{"counts": 7}'), says(' {"count": 7}')]);
    const { reply, format } = await send('go');
    assert.deepEqual([reply, format, model.requests.length], ['{"count":7}', 'json', 2]);
  });

  it('a model that never gives a value meets the limit of turns, with what it said', async () => {
    const { send, model } = returningLoop([says('no idea')]);
    await assert.rejects(
      send('go'),
      (error) => isTemperError(error, 'TEMPER_TURN_LIMIT') && error.details['reply'] === 'no idea',
    );
    assert.equal(model.requests.length, 31);
  });

  it('a refusal of the model stays a refusal', async () => {
    const { send } = returningLoop([says('I must not', 'refusal')]);
    const { finishReason, format } = await send('go');
    assert.deepEqual([finishReason, format], ['refusal', undefined]);
  });

  it('the first of two values in one answer counts, and other calls of the answer run', async () => {
    const { send, events } = returningLoop([
      calls(['finish', { count: 1 }, 'a'], ['look', {}, 'b'], ['finish', { count: 2 }, 'c']),
    ]);
    assert.equal((await send('go')).reply, '{"count":1}');
    const ended = events.flatMap((event): Json[] => (event.type === 'tool-result' ? [[event.id, event.ok]] : []));
    assert.deepEqual(
      ended.toSorted((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b))),
      [
        ['a', true],
        ['b', true],
        ['c', false],
      ],
    );
  });

  it('the next message of the session sees the value as the answer of the last one', async () => {
    const { send, model } = returningLoop([calls(['finish', { count: 1 }]), calls(['finish', { count: 2 }])]);
    await send('one');
    assert.equal((await send('two')).reply, '{"count":2}', 'each message has its own value');
    assert.deepEqual(
      model.requests[1]?.messages.map(({ role, text }) => [role, text]),
      [
        ['user', 'one'],
        ['assistant', ''],
        ['tool', '{"accepted":true}'],
        ['assistant', '{"count":1}'],
        ['user', 'two'],
      ],
    );
  });

  it('a redelivered message whose value is stored has the same value without a model call', async () => {
    const first = returningLoop([calls(['finish', { count: 1 }])]);
    await first.send('go', { message: 'm-1' });
    const second = returningLoop([says('never')], { records: first.records });
    const { reply, format } = await second.send('go', { message: 'm-1' });
    assert.deepEqual([reply, format, second.model.requests.length], ['{"count":1}', 'json', 0]);
  });
});

describe('hooks of an agent that returns a value', () => {
  it('a hook ends the message only with a value that matches', async () => {
    const good = returningLoop([says('hm')], { hooks: endingWith({ stop: true, result: { count: 3 } }) });
    assert.deepEqual((await good.send('go')).reply, '{"count":3}');
    const bad = returningLoop([says('hm'), calls(['finish', { count: 4 }])], {
      hooks: endingWith({ stop: true, result: { counts: 3 } }),
    });
    assert.equal((await bad.send('go')).reply, '{"count":4}');
    assert.ok(bad.events.some((event) => event.type === 'warning' && event.code === 'TEMPER_HOOK_FAILED'));
  });

  it('a hook that goes on withdraws the value', async () => {
    const { send } = returningLoop([calls(['finish', { count: 1 }]), calls(['finish', { count: 2 }])], {
      hooks: endingWith({ continue: true, message: 'count again' }),
    });
    assert.equal((await send('go')).reply, '{"count":2}');
  });
});
