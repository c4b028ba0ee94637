import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { TemperError } from '../../lib/errors.ts';
import type { ModelEvent, ModelRequest } from '../../models/port.ts';
import { calls, says, type ScriptedAnswer, scriptedLoop } from './scripted-loop.testing.ts';

const isSummary = ({ system }: ModelRequest): boolean => system.startsWith('You summarise');

/** Answers that depend on the kind of the request, so that a test does not count calls. */
const answering =
  (summary: ScriptedAnswer, answer: ScriptedAnswer = says('fine')): ScriptedAnswer =>
  (request, op) => {
    const chosen = isSummary(request) ? summary : answer;
    return typeof chosen === 'function' ? chosen(request, op) : chosen;
  };

/** From a provider that counts nothing, so that the estimate counts. */
function uncounted(events: ModelEvent[]): ModelEvent[] {
  const usage = { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0 };
  return events.map((event) => (event.type === 'end' ? { ...event, usage } : event));
}

async function conversationOf(fixture: ReturnType<typeof scriptedLoop>, messages: number): Promise<void> {
  for (let index = 0; index < messages; index += 1) await fixture.send(`question ${index}`);
}

describe('the compaction of a conversation', () => {
  it('a message that finds more than thirty items gets a summary of all but the last ten, which is charged', async () => {
    const fixture = scriptedLoop([answering(says('They talked about numbers.'))]);
    await conversationOf(fixture, 15);
    assert.equal(fixture.model.requests.filter(isSummary).length, 0);
    const { usage } = await fixture.send('question 15');
    const [summary] = fixture.model.requests.filter(isSummary);
    assert.match(summary?.messages[0]?.text ?? '', /question 0[^]*question 10/);
    assert.ok(!summary?.messages[0]?.text.includes('question 11'));
    const sent = fixture.model.requests.at(-1)?.messages ?? [];
    assert.match(sent[0]?.text ?? '', /^\[A summary of the first 21 messages[^]*They talked about numbers\./);
    assert.deepEqual([sent.length, sent.at(-1)?.text], [11, 'question 15']);
    assert.equal(usage.inputTokens, 20, 'the summary and the answer');
    assert.equal(fixture.ledger.log.length, 17);
    assert.deepEqual(
      fixture.events.filter(({ type }) => type === 'compaction'),
      [{ type: 'compaction', items: 21, characters: 26 }],
    );
    assert.ok(!JSON.stringify(fixture.events).includes('about numbers'), 'the summary is not what the agent says');
  });

  it('another process sees the stored summary, and summarises it with what came after it', async () => {
    const first = scriptedLoop([answering(says('SUMMARY ONE'))]);
    await conversationOf(first, 16);
    const second = scriptedLoop([answering(says('SUMMARY TWO'))], {}, { records: first.records });
    await conversationOf(second, 1);
    assert.match(second.model.requests[0]?.messages[0]?.text ?? '', /SUMMARY ONE/);
    await conversationOf(second, 10);
    const [summary] = second.model.requests.filter(isSummary);
    assert.match(summary?.messages[0]?.text ?? '', /SUMMARY ONE[^]*question 12/);
    const last = second.model.requests.at(-1)?.messages ?? [];
    assert.match(last[0]?.text ?? '', /SUMMARY TWO/);
    assert.ok(!JSON.stringify(last).includes('SUMMARY ONE'));
  });

  it('a long message is summarised when it fills the window, and keeps its task', async () => {
    const steps = Array.from({ length: 24 }, (_, index) => uncounted(calls(['read', { page: index }])));
    let turn = 0;
    const fixture = scriptedLoop(
      [answering(says('Pages were read.'), () => steps[turn++] ?? says('done'))],
      { read: () => 'page text '.repeat(300) },
      { contextTokens: () => 16_000 },
    );
    const { reply } = await fixture.send('read all pages');
    assert.equal(reply, 'done');
    assert.ok(fixture.events.some(({ type }) => type === 'compaction'));
    for (const { messages } of fixture.model.requests) assert.ok(JSON.stringify(messages).includes('read all pages'));
    const last = fixture.model.requests.at(-1)?.messages ?? [];
    assert.match(last[0]?.text ?? '', /Pages were read\.[^]*\[The message that you work on:\]\nread all pages/);
  });

  it('a model that fails three times, or is silent, leaves the conversation as it is', async () => {
    const failing = (): never => {
      throw new TemperError('TEMPER_MODEL_OVERLOADED', 'busy', { retry: 'backoff' });
    };
    for (const summary of [failing, says(''), says('no', 'refusal')]) {
      const fixture = scriptedLoop([answering(summary)]);
      await conversationOf(fixture, 16);
      assert.equal(fixture.model.requests.filter(isSummary).length, 3);
      assert.equal(fixture.model.requests.at(-1)?.messages.length, 31);
      assert.ok(fixture.events.some((event) => event.type === 'warning' && event.code === 'no-summary'));
    }
  });

  it('an exhausted quota ends the attempts, and the message fails with it', async () => {
    const denied = (): never => {
      throw new TemperError('TEMPER_QUOTA_EXCEEDED', 'used');
    };
    const fixture = scriptedLoop([answering(denied, says('fine'))]);
    await conversationOf(fixture, 16);
    assert.equal(fixture.model.requests.filter(isSummary).length, 1);
  });

  it('a summary that is cut at its limit counts', async () => {
    const fixture = scriptedLoop([answering(says('They talked', 'length'))]);
    await conversationOf(fixture, 16);
    assert.match(fixture.model.requests.at(-1)?.messages[0]?.text ?? '', /They talked$/);
  });
});
