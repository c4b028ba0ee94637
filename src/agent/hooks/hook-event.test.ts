import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Json } from '../../lib/json.ts';
import { type HookEvent, type HookEventType, hookArguments, parseDirective } from './hook-event.ts';

const TYPES: readonly HookEventType[] = [
  'turn-start',
  'message',
  'reasoning',
  'tool-call',
  'tool-result',
  'turn-end',
  'error',
  'retry',
];

describe('the directive of a hook', () => {
  const cases: [HookEventType, Json, unknown][] = [
    ['tool-call', null, {}],
    ['tool-call', {}, {}],
    ['tool-call', { note: 'seen' }, {}],
    ['tool-call', { deny: 'no\u001b[31m' }, { directive: { deny: 'no\\u{1b}[31m' } }],
    ['tool-call', { allow: true }, { directive: { allow: true } }],
    ['turn-end', { stop: true }, { directive: { stop: true } }],
    ['turn-end', { stop: true, result: { n: 1 } }, { directive: { stop: true, result: { n: 1 } } }],
    ['turn-end', { continue: true, message: 'more' }, { directive: { continue: true, message: 'more' } }],
    ['turn-end', { continue: true, message: ' ' }, { directive: { continue: true } }],
    ['turn-end', { stop: false, continue: true }, { directive: { continue: true } }],
    ['error', { continue: true }, { directive: { continue: true } }],
    ['error', { stop: true, result: 'gave up' }, { directive: { stop: true, result: 'gave up' } }],
    ['message', { allow: true }, { directive: { allow: true } }],
  ];
  for (const [type, output, expected] of cases) {
    it(`a hook that gives ${JSON.stringify(output)} at ${type} is understood`, () => {
      assert.deepEqual(parseDirective(type, output), expected);
    });
  }

  const malformed: [HookEventType, Json, RegExp][] = [
    ['tool-call', 'deny', /neither an object nor null/],
    ['tool-call', { deny: true }, /must be a text/],
    ['tool-call', { allow: false }, /refuse a call with "deny"/],
    ['tool-call', { deny: 'x', allow: true }, /both "deny" and "allow"/],
    ['tool-call', { stop: true }, /not a directive at tool-call/],
    ['turn-end', { deny: 'x' }, /not a directive at turn-end/],
    ['turn-end', { stop: 'yes' }, /must be true/],
    ['turn-end', { stop: true, continue: true }, /both/],
    ['turn-end', { continue: true, message: 7 }, /must be a text/],
    ['turn-end', { stop: true, result: 'x'.repeat(100_001) }, /100003 characters/],
    ['turn-start', { continue: true }, /not a directive at turn-start/],
  ];
  for (const [type, output, problem] of malformed) {
    it(`a hook that gives ${JSON.stringify(output).slice(0, 60)} at ${type} has failed`, () => {
      assert.match(parseDirective(type, output).problem ?? 'understood', problem);
    });
  }

  it('a member that an output inherits is no directive', () => {
    const output = JSON.parse('{"__proto__": {"allow": true}}') as Json;
    assert.deepEqual(
      TYPES.map((type) => parseDirective(type, output)),
      TYPES.map(() => ({})),
    );
  });
});

describe('the arguments of a hook', () => {
  const call: HookEvent = { type: 'tool-call', tool: 'file_write', args: { path: 'a' } };
  const closed = (...names: string[]) => ({
    type: 'object',
    properties: Object.fromEntries(names.map((name) => [name, {}])),
    additionalProperties: false,
  });

  it('an open schema gets the whole event, and a closed one the members it names', () => {
    assert.deepEqual(hookArguments(call, { type: 'object' }), { ...call });
    assert.deepEqual(hookArguments(call, closed('type', 'tool')), { type: 'tool-call', tool: 'file_write' });
    assert.deepEqual(hookArguments(call, closed()), {});
  });

  it('the trace is only for a schema that names it', () => {
    const end: HookEvent = { type: 'turn-end', turnNumber: 1, result: 'done', trace: [{ type: 'turn-start' }] };
    assert.equal(hookArguments(end, { type: 'object' })?.['trace'], undefined);
    assert.deepEqual(hookArguments(end, closed('trace')), { trace: [{ type: 'turn-start' }] });
  });

  it('a call that is too large to be shown as a whole is not shown in part', () => {
    const large: HookEvent = { type: 'tool-call', tool: 't', args: { text: 'x'.repeat(300_000) } };
    assert.equal(hookArguments(large, { type: 'object' }), undefined);
    assert.deepEqual(hookArguments(large, closed('tool')), { tool: 't' });
  });

  it('long texts that a hook observes are cut with a note', () => {
    const text = 'x'.repeat(70_000);
    const shown = [
      hookArguments({ type: 'message', text, delta: false }, {})?.['text'],
      hookArguments({ type: 'reasoning', text }, {})?.['text'],
      hookArguments({ type: 'turn-end', turnNumber: 1, result: text, trace: [] }, {})?.['result'],
      hookArguments({ type: 'tool-result', tool: 't', args: {}, result: { output: text } }, {})?.['result'],
    ];
    for (const value of shown)
      assert.match(JSON.stringify(value).slice(-60), /truncated: 70,\d{3} → 65,536 characters/);
  });
});
