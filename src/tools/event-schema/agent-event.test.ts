import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Compile } from 'typebox/compile';
import type { AgentEvent } from '../events.ts';
import { EVENT_MEMBERS, StampedEvent } from './agent-event.ts';

/** One event of each kind; the type does not compile while a kind is missing. */
const SAMPLES: { [Kind in AgentEvent['type']]: Extract<AgentEvent, { type: Kind }> } = {
  'session-start': { type: 'session-start', session: 's-1', model: 'm', policy: 'p', level: 'standard' },
  'message-received': { type: 'message-received', text: '' },
  context: {
    type: 'context',
    characters: 9,
    parts: [{ kind: 'File', name: 'SOUL.md', state: 'Included', characters: 9 }],
  },
  'turn-start': { type: 'turn-start', turn: 1 },
  message: { type: 'message', text: 'hi', delta: true },
  reasoning: { type: 'reasoning', text: 'because' },
  retry: { type: 'retry', model: 'a/b', attempt: 2, code: 'TEMPER_MODEL_OVERLOADED', milliseconds: 300 },
  compaction: { type: 'compaction', items: 21, characters: 900 },
  'model-routed': { type: 'model-routed', points: 120, complexity: 'Medium', model: 'a/b' },
  'tool-call': { type: 'tool-call', id: '1', tool: 't', input: { any: [1, null] } },
  'tool-result': {
    type: 'tool-result',
    id: '1',
    tool: 't',
    ok: true,
    summary: '{}',
    milliseconds: 1.5,
  },
  'file-created': { type: 'file-created', path: 'a/b.txt', bytes: 3 },
  'forge-start': { type: 'forge-start', tool: 't', mode: 'Sandbox', description: 'd' },
  'forge-gate': { type: 'forge-gate', tool: 't', result: { gate: 'judge', passed: true, note: '0.93' } },
  'forge-accepted': { type: 'forge-accepted', tool: 't', digest: 'sha256:00', tier: 'Session' },
  'forge-refused': { type: 'forge-refused', tool: 't', gate: 'tests', code: 'TEMPER_TOOL_FAILED', message: 'm' },
  promotion: {
    type: 'promotion',
    tool: 't',
    digest: 'sha256:00',
    from: 'Session',
    to: 'Agent',
    state: 'Promoted',
    note: '',
  },
  demotion: { type: 'demotion', tool: 't', digest: 'sha256:00', reason: 'r' },
  hook: { type: 'hook', tool: 't', event: 'tool-call', directive: 'deny', milliseconds: 1 },
  'agent-start': { type: 'agent-start', name: 'n', model: 'p/m' },
  'agent-message': { type: 'agent-message', text: 't' },
  'agent-error': { type: 'agent-error', code: 'TEMPER_MODEL_OVERLOADED', message: 'm', attempt: 1 },
  'agent-complete': {
    type: 'agent-complete',
    ok: true,
    turns: 1,
    toolCalls: 0,
    inputTokens: 1,
    outputTokens: 1,
    summary: 's',
  },
  'approval-requested': { type: 'approval-requested', request: 'a-1', tool: 't', risk: 'high', reason: 'r' },
  'approval-decided': { type: 'approval-decided', request: 'a-1', decision: 'Approved', by: 'kim' },
  'turn-parked': { type: 'turn-parked', requests: ['a-1'] },
  warning: { type: 'warning', code: 'W', message: 'm' },
  error: { type: 'error', code: 'TEMPER_INTERNAL', message: 'm', attempt: 1 },
  'turn-end': { type: 'turn-end', turn: 1, inputTokens: 1, outputTokens: 1 },
  'session-end': {
    type: 'session-end',
    turns: 1,
    toolCalls: 0,
    inputTokens: 1,
    outputTokens: 1,
    reply: '{}',
    format: 'json',
  },
};
/** Members that an event may lack. */
const OPTIONAL: readonly string[] = ['hook.directive', 'session-end.format'];
const STAMP = { time: '2031-01-01T00:00:00.000Z', agent: 'a', session: 's-1', rootMessage: 'm-1' };

describe('the schema of agent events', () => {
  const schema = Compile(StampedEvent);

  it('the schema accepts an event of each kind, and no further members', () => {
    assert.deepEqual(Object.keys(SAMPLES).toSorted(), Object.keys(EVENT_MEMBERS).toSorted());
    for (const sample of Object.values(SAMPLES)) {
      const event: StampedEvent = { ...sample, ...STAMP };
      assert.ok(schema.Check(event), sample.type);
      assert.ok(!schema.Check({ ...event, extra: 1 }), `${sample.type} with an unknown member`);
    }
  });

  it('the schema accepts the origin and the depth of a nested call, within their limits', () => {
    const call = { ...SAMPLES['tool-call'], ...STAMP, origin: 'Code', depth: 2 };
    assert.ok(schema.Check(call));
    assert.ok(schema.Check({ ...SAMPLES['tool-result'], ...STAMP, origin: 'Compose', depth: 1 }));
    for (const change of [{ origin: 'Root' }, { depth: 0 }, { depth: 17 }, { depth: '1' }])
      assert.ok(!schema.Check({ ...call, ...change }), JSON.stringify(change));
  });

  it('every event may have the ids of a nested agent, within their limits', () => {
    const ids = { contextId: 'c', ancestorIds: ['m-1'] };
    for (const sample of Object.values(SAMPLES)) assert.ok(schema.Check({ ...sample, ...STAMP, ...ids }), sample.type);
    for (const change of [{ contextId: 'c'.repeat(65) }, { ancestorIds: 'm-1' }, { ancestorIds: Array(17).fill('m') }])
      assert.ok(!schema.Check({ ...SAMPLES.message, ...STAMP, ...ids, ...change }), JSON.stringify(change));
  });

  it('the schema refuses an event that lacks a member or its stamp', () => {
    for (const sample of Object.values(SAMPLES)) {
      const event: Record<string, unknown> = { ...sample, ...STAMP };
      for (const name of Object.keys(event).filter((member) => !OPTIONAL.includes(`${sample.type}.${member}`))) {
        const { [name]: _, ...rest } = event;
        assert.ok(!schema.Check(rest), `${sample.type} without ${name}`);
      }
    }
  });

  it('the schema refuses control sequences, line breaks and hidden marks where a member is a name', () => {
    const marks = [
      '\u001b]52;c;Y3VybA==\u0007',
      '\u001b[2J',
      '\u009b2J',
      'a\nb',
      'a\rb',
      '\u202egnol',
      '\u200bx',
      '\u2028',
      '\u007f',
    ];
    for (const mark of marks) {
      for (const event of [
        { ...SAMPLES['session-start'], policy: mark },
        { ...SAMPLES['session-start'], level: mark },
        { ...SAMPLES['session-start'], model: mark },
        { ...SAMPLES['forge-start'], mode: mark },
        { ...SAMPLES.warning, code: mark },
      ]) {
        assert.ok(!schema.Check({ ...event, ...STAMP }), JSON.stringify(event));
      }
    }
    assert.ok(schema.Check({ ...SAMPLES['forge-start'], ...STAMP, mode: 'песочница (unknown)' }));
    assert.ok(schema.Check({ ...SAMPLES['session-start'], ...STAMP, model: 'replay/scripted:7b@latest' }));
  });

  it('every string of an event has a maximum length', () => {
    const unbounded = Object.entries(EVENT_MEMBERS).flatMap(([kind, members]) =>
      Object.entries(members).flatMap(([member, given]) => {
        const { type, maxLength, pattern } = given as { type?: string; maxLength?: number; pattern?: string };
        const bounded = maxLength !== undefined || /\{[\d,]+\}\$$/.test(pattern ?? '');
        return type !== 'string' || bounded ? [] : [`${kind}.${member}`];
      }),
    );
    assert.deepEqual(unbounded, []);
  });

  it('the schema refuses text beyond the limits of the gateway', () => {
    assert.ok(!schema.Check({ ...SAMPLES.message, ...STAMP, text: 'x'.repeat(100_001) }));
    assert.ok(!schema.Check({ ...SAMPLES['forge-gate'], ...STAMP, result: { gate: 'x', passed: true, note: '' } }));
    assert.ok(!schema.Check({ ...SAMPLES.error, ...STAMP, code: 'not-a-code' }));
  });
});
