import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import type { StampedEvent } from '../tools/events.ts';
import {
  parseBatch,
  splitEvents,
  type StoredBatch,
  type StoredSessionEvent,
  toStoredEvents,
  unfold,
} from './session-event-batch.ts';

const event = (text: string): StampedEvent => ({
  type: 'message',
  text,
  delta: false,
  time: '2026-11-21T10:00:00Z',
  agent: 'a',
  session: 's',
  rootMessage: 'r',
});

async function linesOf(batches: StoredBatch[], seq: number, skip = 0): Promise<StoredSessionEvent[]> {
  const source = async function* () {
    yield* batches.filter((batch) => batch.seq > seq);
  };
  const lines: StoredSessionEvent[] = [];
  for await (const line of unfold(source(), { seq, skip })) lines.push(line);
  return lines;
}

describe('batches of session events', () => {
  it('a reader that stops behind any line continues with the next one, whatever the batches are', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 4 })), { maxLength: 6 }),
        async (shapes) => {
          let seq = 1_000;
          const batches = shapes.map(([gap, count]): StoredBatch => {
            seq += gap;
            return {
              kind: 'events',
              seq,
              events: Array.from({ length: count }, (_, index) => event(`${seq}/${index}`)),
            };
          });
          const all = await linesOf(batches, 0);
          for (const [index, line] of all.entries()) {
            assert.deepEqual(await linesOf(batches, line.seq, line.skip), all.slice(index + 1));
          }
        },
      ),
      { numRuns: 50 },
    );
  });
  it('a batch fits into one message, and an event above the limit is alone', () => {
    const large = 'x'.repeat(100_000);
    const events = [event('a'), event(large), event(large), event('x'.repeat(190_000)), event('b')];
    assert.deepEqual(
      splitEvents(events).map((batch) => batch.length),
      [2, 1, 1, 1],
    );
    assert.deepEqual(splitEvents(events).flat(), events);
    assert.deepEqual(splitEvents([]), []);
  });
  it('invalid events of a stored batch are left out, and an older release stored one event alone', () => {
    const stored = toStoredEvents([event('a'), null as unknown as StampedEvent, event('b')]);
    assert.deepEqual(parseBatch(stored, 7), { kind: 'events', seq: 7, events: [event('a'), event('b')] });
    const alone = JSON.parse(JSON.stringify({ kind: 'event', event: event('a') }));
    assert.deepEqual(parseBatch(alone, 7), { kind: 'events', seq: 7, events: [event('a')] });
    assert.equal(parseBatch({ kind: 'events', events: 'none' }, 7), undefined);
    assert.equal(parseBatch(undefined, 7), undefined);
  });
});
