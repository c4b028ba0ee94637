import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { decodeParts, encodeParts } from './parts.ts';

describe('a body of JSON and bytes', () => {
  it('both parts are read as they were written', () => {
    const bytes = Buffer.from([0, 1, 255]);
    const parts = decodeParts(encodeParts({ a: 'é' }, bytes));
    assert.deepEqual(JSON.parse(parts?.json.toString('utf8') ?? ''), { a: 'é' });
    assert.deepEqual(parts?.bytes, bytes);
    assert.equal(decodeParts(encodeParts({}, Buffer.alloc(0)))?.bytes.length, 0);
  });

  it('a body that is cut, lies about its length or has too much of a part is none', () => {
    const body = encodeParts({ a: 1 }, Buffer.from('x'));
    const lying = Buffer.from(body);
    lying.writeUInt32BE(body.length, 0);
    const long = Buffer.alloc(4 + 1_048_577);
    long.writeUInt32BE(1_048_577, 0);
    for (const wrong of [Buffer.alloc(3), lying, long, encodeParts({}, Buffer.alloc(3 * 1_048_576 + 1))])
      assert.equal(decodeParts(wrong), undefined);
  });
});
