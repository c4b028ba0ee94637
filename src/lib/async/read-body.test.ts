import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { describe, it } from 'node:test';
import { readBody } from './read-body.ts';

const tooLarge = (): Error => new Error('too large');

describe('readBody', () => {
  it('readBody joins the chunks before it decodes them, up to exactly the limit', async () => {
    const bytes = Buffer.from('grün');
    const chunks = [bytes.subarray(0, 3), bytes.subarray(3)];
    assert.equal(await readBody(Readable.from(chunks), 5, tooLarge), 'grün');
    assert.equal(await readBody(Readable.from([]), 0, tooLarge), '');
  });

  it('readBody throws the error of its caller beyond the limit and destroys the stream', async () => {
    let reads = 0;
    const endless = new Readable({
      read() {
        reads += 1;
        this.push(Buffer.alloc(16));
      },
      highWaterMark: 16,
    });
    await assert.rejects(readBody(endless, 40, tooLarge), /^Error: too large$/);
    assert.equal(endless.destroyed, true);
    assert.ok(reads < 10);
  });
});
