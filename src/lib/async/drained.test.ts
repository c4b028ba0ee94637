import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { describe, it } from 'node:test';
import { drained } from './drained.ts';

function fullStream(): PassThrough {
  const stream = new PassThrough({ highWaterMark: 1 });
  assert.equal(stream.write('a'), false);
  return stream;
}

describe('drained', () => {
  it('drained resolves when the reader has taken the data, and leaves no listener', async () => {
    const stream = fullStream();
    const listeners = (): number =>
      stream.listenerCount('drain') + stream.listenerCount('close') + stream.listenerCount('error');
    const before = listeners();
    const waiting = drained(stream);
    assert.ok(listeners() > before);
    stream.resume();
    await waiting;
    assert.equal(listeners(), before);
  });

  it('drained resolves when the stream is destroyed, before and after the call', async () => {
    const stream = fullStream();
    const waiting = drained(stream);
    stream.destroy();
    await waiting;
    await drained(stream);
  });
});
