import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { mergeReplies, parseEnd, ReplyCursor, type StoredSessionEnd } from './session-replies.ts';

const end = (seq: number): StoredSessionEnd => ({
  kind: 'reply',
  message: `m-${seq}`,
  text: '',
  finishReason: 'complete',
  seq,
});
const event = (seq: number) => ({ kind: 'event', seq });

async function* iterate<T>(items: readonly T[]): AsyncGenerator<T> {
  yield* items;
}

async function merge(events: { kind: string; seq: number }[], replies: number[], cursor = new ReplyCursor()) {
  const stored = replies.map((seq, index) => ({ line: end(seq), at: index + 1 }));
  const unread = stored.filter(({ at }) => at > cursor.read);
  const sequences: number[] = [];
  for await (const { seq } of mergeReplies(iterate(events), iterate(unread), cursor)) sequences.push(seq);
  return sequences;
}

describe('parseEnd', () => {
  it('a stored reply keeps the format that a gateway checked, and no other', () => {
    const reply = { kind: 'reply', message: 'm', text: '{}', finishReason: 'complete' };
    assert.deepEqual(parseEnd({ ...reply, format: 'json' }), { ...reply, format: 'json' });
    assert.deepEqual(parseEnd({ ...reply, format: 'xml' }), reply);
  });
});

describe('mergeReplies', () => {
  it('a reply that is among the events comes once, at its place', async () => {
    assert.deepEqual(await merge([event(1), end(2), event(3)], [2]), [1, 2, 3]);
  });
  it('a reply whose event was removed comes at its place', async () => {
    assert.deepEqual(await merge([event(5), event(6)], [2, 4]), [2, 4, 5, 6]);
    assert.deepEqual(await merge([], [2]), [2]);
  });
  it('replies that two gateways stored out of order are all there', async () => {
    assert.deepEqual(await merge([event(9)], [4, 3]), [4, 3, 9]);
  });
  it('a reader that continues with its cursor gets only replies that it does not know', async () => {
    const cursor = new ReplyCursor();
    await merge([event(1), end(2)], [2], cursor);
    assert.equal(cursor.isNew(end(4)), true);
    assert.deepEqual(await merge([], [2, 3, 4], cursor), [3]);
  });
  it('a reply that the reader did not take is not skipped afterwards', async () => {
    const cursor = new ReplyCursor();
    const lines = mergeReplies(iterate([]), iterate([{ line: end(1), at: 1 }]), cursor);
    await lines.next();
    await lines.return(undefined);
    assert.equal(cursor.read, 0);
  });
});
