import assert from 'node:assert/strict';
import { text } from 'node:stream/consumers';
import { describe, it } from 'node:test';
import { RelayedStream, WINDOW_CHARACTERS } from './relayed-stream.ts';

/** Two ends; what one sends arrives at the other, and `sent` has what the first one sent. */
function twoEnds() {
  const sent: string[] = [];
  const near: RelayedStream = new RelayedStream({
    send: (part) => {
      sent.push(part);
      assert.ok(far.receive(part));
    },
    taken: () => undefined,
  });
  const far: RelayedStream = new RelayedStream({
    send: () => undefined,
    taken: (characters) => assert.ok(near.release(characters)),
  });
  return { near, far, sent };
}

describe('a stream over the socket of a pod', () => {
  it('a long text arrives whole, in parts that split no character', async () => {
    const { near, far, sent } = twoEnds();
    const long = `x${'𝕏é'.repeat(400_000)}`;
    near.end(long, () => far.finish());
    assert.equal(await text(far), long);
    assert.ok(sent.every((part) => part.isWellFormed() && part.length <= 65_536));
  });

  it('a character whose bytes arrive in two chunks is sent as one', async () => {
    const { near, far } = twoEnds();
    const bytes = Buffer.from('𝕏');
    near.write(bytes.subarray(0, 2));
    near.end(bytes.subarray(2), () => far.finish());
    assert.equal(await text(far), '𝕏');
  });

  it('a writer whose reader takes nothing stops at the window', async () => {
    const { near, far, sent } = twoEnds();
    near.write('x'.repeat(2 * WINDOW_CHARACTERS));
    await new Promise(setImmediate);
    const waiting = sent.join('').length;
    assert.ok(waiting <= WINDOW_CHARACTERS, String(waiting));
    far.destroy();
    near.destroy();
  });

  it('a side that sends more than the window, or takes what was not sent, breaks the protocol', () => {
    const link = { send: () => undefined, taken: () => undefined };
    const stream = new RelayedStream(link);
    assert.equal(stream.receive('x'.repeat(WINDOW_CHARACTERS)), true);
    assert.equal(stream.receive('x'), false);
    assert.equal(new RelayedStream(link).release(1), false);
    const ended = new RelayedStream(link);
    ended.finish();
    assert.equal(ended.receive('x'), false, 'it has ended');
  });
});
