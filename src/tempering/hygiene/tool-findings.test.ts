import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Digest } from '../../lib/canonical.ts';
import { type MessageToolCalls, ToolCallCounter } from './tool-calls.ts';
import { type AgentHistory, findTools, messageUses } from './tool-findings.ts';

const digest = (name: string): Digest => `sha256:${name.padStart(64, '0')}`;
const [A, B] = [digest('a'), digest('b')];
const RULES = { maxHarmPercent: 20, maxErrorPercent: 15 };
const ASSESSED = [A, B].map((tool) => ({ digest: tool, countFrom: 0 }));

/** Messages in which the agent called one tool once each, and their tasks. */
function history(groups: readonly { tool: Digest; count: number; ends?: 'well' | 'badly'; failures?: number }[]) {
  const tasks: AgentHistory['tasks'][number][] = [];
  const calls: MessageToolCalls[] = [];
  for (const { tool, count, ends, failures = 0 } of groups) {
    for (let index = 0; index < count; index += 1) {
      const message = `msg-${calls.length}`;
      const endedAt = 1_000 + calls.length;
      const outcome = ends === 'badly' ? 'failed' : 'completed';
      if (ends !== undefined) tasks.push({ message, endedAt, outcome, deliveries: 1, categories: [] });
      calls.push({ message, endedAt, tools: [{ digest: tool, calls: 1, failures: index < failures ? 1 : 0 }] });
    }
  }
  return { tasks, calls };
}

const found = (all: AgentHistory, assessed = ASSESSED, rules = RULES) =>
  findTools(all, rules, assessed).map((finding) => [finding.digest, finding.cause, finding.message]);

describe('the findings about the tools of one agent', () => {
  it('a tool whose tasks end badly is harmful, and one whose calls fail too often is failing', () => {
    const harmful = history([
      { tool: B, count: 30, ends: 'well' },
      { tool: A, count: 8, ends: 'badly' },
    ]);
    assert.deepEqual(found(harmful), [[A, 'Harmful', '8 of its 8 tasks ended badly, and 0 of 30 others']]);
    const failing = history([
      { tool: B, count: 30, ends: 'well' },
      { tool: A, count: 20, ends: 'well', failures: 4 },
    ]);
    assert.deepEqual(found(failing), [[A, 'Failing', '4 of its last 20 uses failed, 15 % are allowed']]);
  });

  it('calls of messages between agents count as calls, and say nothing about tasks', () => {
    assert.deepEqual(found(history([{ tool: A, count: 9, failures: 9 }])), [], 'nine are too few');
    assert.equal(found(history([{ tool: A, count: 10, failures: 9 }]))[0]?.[1], 'Failing');
  });

  it('only the newest calls count, of whole messages', () => {
    const before = history([{ tool: A, count: 10, failures: 10 }]).calls;
    const after = history([{ tool: A, count: 20 }]).calls.map((call) => ({ ...call, endedAt: call.endedAt + 1_000 }));
    assert.deepEqual(found({ tasks: [], calls: [...after, ...before] }), []);
  });

  it('nothing before the reactivation of a tool counts for it', () => {
    const all = history([
      { tool: B, count: 30, ends: 'well' },
      { tool: A, count: 12, ends: 'badly', failures: 12 },
    ]);
    assert.equal(found(all).length, 1);
    assert.deepEqual(found(all, [{ digest: A, countFrom: 5_000 }]), []);
  });

  it('a digest that the agent does not have in service is no finding, and still shares the blame', () => {
    const all = history([
      { tool: B, count: 30, ends: 'well' },
      { tool: A, count: 8, ends: 'badly' },
    ]);
    assert.deepEqual(found(all, [{ digest: B, countFrom: 0 }]), []);
  });

  it('a tool is never found under limits of 100 percent', () => {
    const all = history([
      { tool: B, count: 30, ends: 'well' },
      { tool: A, count: 20, ends: 'badly', failures: 20 },
    ]);
    assert.deepEqual(found(all, ASSESSED, { maxHarmPercent: 100, maxErrorPercent: 100 }), []);
  });
});

describe('the calls of one message', () => {
  it('the counter has at most twenty tools, and starts again for the next message', () => {
    const counter = new ToolCallCounter();
    for (let index = 0; index < 25; index += 1) counter.add(digest(`${index}`), true);
    counter.add(digest('0'), false);
    const counts = counter.counts();
    assert.equal(counts.length, 20);
    assert.deepEqual(counts[0], { digest: digest('0'), calls: 2, failures: 1 });
    counter.clear();
    assert.deepEqual(counter.counts(), []);
  });

  it('several deliveries of a message are one message that used the tool', () => {
    const calls = history([{ tool: A, count: 2 }]).calls;
    const [first] = calls as [MessageToolCalls];
    const uses = messageUses([...calls, { ...first, endedAt: 9_000 }]);
    assert.deepEqual(uses.get(A), { rootMessages: 2, lastUsedAt: new Date(9_000).toISOString() });
  });
});
