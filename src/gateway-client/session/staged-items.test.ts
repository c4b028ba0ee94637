import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import type { SessionAppend } from '../../gateway-api/pod-api.ts';
import type { ModelMessage } from '../../models/port.ts';
import { StagedItems } from './staged-items.ts';

const user = (text: string): ModelMessage => ({ role: 'user', text });
const answer = (text: string): ModelMessage => ({ role: 'assistant', text, toolCalls: [] });

/** A session at the gateway: stores an equal append once, and refuses one that does not follow. */
class SessionDouble {
  readonly items: ModelMessage[] = [];
  #last = '';

  readonly append = async (append: SessionAppend): Promise<void> => {
    const { afterSeq, items } = append;
    if (JSON.stringify(append) === this.#last) return;
    assert.equal(afterSeq, this.items.length, 'another writer appended');
    this.items.push(...items);
    this.#last = JSON.stringify(append);
  };
}

const refuse = async (): Promise<void> => assert.fail('an append had a request of its own');

describe('StagedItems', () => {
  it('the words of a user wait for the answer, and both are one append', async () => {
    const staged = new StagedItems();
    staged.add(4, [user('hi')], {});
    assert.equal(await staged.forModelCall(refuse), undefined);
    staged.add(5, [answer('hello')], { tainted: true });
    const append = await staged.forEnd(refuse);
    assert.deepEqual(append, { afterSeq: 4, items: [user('hi'), answer('hello')], tainted: true });
    staged.stored(append);
    assert.equal(await staged.forEnd(refuse), undefined);
  });
  it('the end carries the words of a user whose message failed before an answer', async () => {
    const staged = new StagedItems();
    staged.add(0, [user('hi')], {});
    assert.deepEqual(await staged.forEnd(refuse), { afterSeq: 0, items: [user('hi')] });
  });
  it('an append without a response is repeated unchanged, and what came after it follows', async () => {
    const staged = new StagedItems();
    const session = new SessionDouble();
    staged.add(0, [answer('a')], {});
    const sent = await staged.forModelCall(refuse);
    assert.ok(sent !== undefined);
    await session.append(sent);
    assert.equal(await staged.forModelCall(refuse), sent, 'the response was lost');
    staged.add(1, [answer('b')], {});
    const next = await staged.forEnd(session.append);
    assert.deepEqual(next, { afterSeq: 1, items: [answer('b')] });
  });
  it('a large append has a request of its own', async () => {
    const staged = new StagedItems();
    const session = new SessionDouble();
    staged.add(0, [answer('x'.repeat(300_000))], {});
    assert.equal(await staged.forModelCall(session.append), undefined);
    assert.equal(session.items.length, 1);
    assert.equal(await staged.forEnd(refuse), undefined);
  });
  it('no item is lost, doubled or out of order, whichever responses are lost', async () => {
    const step = fc.record({
      items: fc.integer({ min: 0, max: 2 }),
      call: fc.constantFrom('model', 'end', 'flush'),
      isStored: fc.boolean(),
      isConfirmed: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        const [staged, session] = [new StagedItems(), new SessionDouble()];
        const all: ModelMessage[] = [];
        for (const { items, call, isStored, isConfirmed } of steps) {
          const added = Array.from({ length: items }, (_, index) => answer(`${all.length + index}`));
          if (items > 0) staged.add(all.length, added, {});
          all.push(...added);
          if (call === 'flush') await staged.flush(session.append);
          const append =
            call === 'flush' ? undefined : await staged[call === 'end' ? 'forEnd' : 'forModelCall'](session.append);
          if (append === undefined || !isStored) continue;
          await session.append(append);
          if (isConfirmed) staged.stored(append);
        }
        await staged.flush(session.append);
        assert.deepEqual(session.items, all);
      }),
      { numRuns: 200 },
    );
  });
});
