import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { decodeBase64, encodeBase64, GuestTextDecoder, GuestTextEncoder } from './encoding.ts';

describe('encodings of the guest', () => {
  it('TextEncoder and TextDecoder agree with Node for any text and any bytes', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.uint8Array(), fc.boolean(), (text, bytes, ignoreBOM) => {
        assert.deepEqual(new GuestTextEncoder().encode(text), new TextEncoder().encode(text));
        const options = { ignoreBOM };
        assert.equal(
          new GuestTextDecoder('utf8', options).decode(bytes),
          new TextDecoder('utf8', options).decode(bytes),
        );
      }),
      { numRuns: 2_000 },
    );
  });

  it('TextDecoder replaces invalid sequences like Node, and refuses them when fatal', () => {
    const byte = fc.constantFrom(
      0x41,
      0x80,
      0xbf,
      0xc2,
      0xe0,
      0xa0,
      0x9f,
      0xed,
      0xef,
      0xbb,
      0xf0,
      0x90,
      0xf4,
      0x8f,
      0xff,
      0xc0,
    );
    fc.assert(
      fc.property(fc.array(byte, { maxLength: 8 }), (list) => {
        const bytes = Uint8Array.from(list);
        assert.equal(new GuestTextDecoder().decode(bytes), new TextDecoder().decode(bytes));
        const decode = (decoder: { decode(data: Uint8Array): string }): string => {
          try {
            return decoder.decode(bytes);
          } catch (error) {
            return (error as Error).name;
          }
        };
        assert.equal(
          decode(new GuestTextDecoder('utf-8', { fatal: true })),
          decode(new TextDecoder('utf-8', { fatal: true })),
        );
      }),
      { numRuns: 5_000 },
    );
  });

  it('TextDecoder refuses other encodings and streams', () => {
    assert.throws(() => new GuestTextDecoder('utf-16le'), RangeError);
    assert.throws(() => new GuestTextDecoder().decode(new Uint8Array(1), { stream: true }), /no streams/);
    assert.equal(new GuestTextDecoder().decode(new Uint8Array([0x61, 0x62, 0x63]).subarray(1).buffer), 'abc');
  });

  it('encodeInto stops before a character that does not fit', () => {
    const [actual, expected] = [new Uint8Array(4), new Uint8Array(4)];
    const counts = new GuestTextEncoder().encodeInto('aé€', actual);
    assert.deepEqual(counts, new TextEncoder().encodeInto('aé€', expected));
    assert.deepEqual(actual, expected);
  });

  it('btoa and atob agree with Node for any text', () => {
    const outcome = (run: () => string): string => {
      try {
        return run();
      } catch (error) {
        return (error as Error).name;
      }
    };
    const latin = fc.string({ unit: fc.integer({ min: 0, max: 256 }).map((code) => String.fromCharCode(code)) });
    fc.assert(
      fc.property(latin, (text) =>
        assert.equal(
          outcome(() => encodeBase64(text)),
          outcome(() => btoa(text)),
        ),
      ),
    );
    const base64 = fc.string({ unit: fc.constantFrom('a', 'Q', '/', '+', '=', ' ', '\n', '0', '-') });
    fc.assert(
      fc.property(base64, (text) =>
        assert.equal(
          outcome(() => decodeBase64(text)),
          outcome(() => atob(text)),
        ),
      ),
      { numRuns: 2_000 },
    );
  });
});
