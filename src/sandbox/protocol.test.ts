import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { array, assert as check, constantFrom, integer, json, property, string } from 'fast-check';
import { encodeFrame, FrameReader, parseRunnerFrame } from './protocol.ts';

const USAGE = { milliseconds: 1, heapBytes: 2, hostCalls: 3 };
const DONE = { type: 'done', job: 1, ok: true, output: '1', usage: USAGE };

function frames(texts: readonly string[]): Buffer {
  return Buffer.concat(
    texts.map((text) => {
      const body = Buffer.from(text);
      const header = Buffer.alloc(4);
      header.writeUInt32BE(body.length);
      return Buffer.concat([header, body]);
    }),
  );
}

describe('FrameReader', () => {
  it('FrameReader returns every frame for any split of the bytes', () => {
    check(
      property(array(string(), { maxLength: 8 }), integer({ min: 1, max: 20 }), (texts, size) => {
        const reader = new FrameReader(10_000);
        const bytes = frames(texts);
        const seen: string[] = [];
        for (let offset = 0; offset < bytes.length; offset += size) {
          seen.push(...(reader.push(bytes.subarray(offset, offset + size)) ?? assert.fail('refused')));
        }
        assert.deepEqual(
          seen,
          texts.map((text) => Buffer.from(text).toString()),
        );
      }),
    );
  });

  it('FrameReader refuses a frame by its announced length', () => {
    assert.equal(new FrameReader(100).push(Buffer.from([0xff, 0xff, 0xff, 0xff])), undefined);
    assert.equal(new FrameReader(100).push(Buffer.from([0, 0, 0, 101])), undefined);
  });

  it('FrameReader reads the frames of encodeFrame', () => {
    const frame = { type: 'answer', job: 1, call: 1, time: 0, ok: true, value: '"é\u2028"' } as const;
    assert.deepEqual(new FrameReader(1_000).push(encodeFrame(frame)), [JSON.stringify(frame)]);
  });
});

describe('parseRunnerFrame', () => {
  it('parseRunnerFrame accepts each kind of frame and drops unknown members', () => {
    assert.deepEqual(parseRunnerFrame(JSON.stringify({ ...DONE, extra: 1 })), DONE);
    assert.deepEqual(parseRunnerFrame('{"type":"ready","x":1}'), { type: 'ready' });
    const call = { type: 'call', job: 1, call: 1, api: 'fetch', input: '{}' };
    assert.deepEqual(parseRunnerFrame(JSON.stringify(call)), call);
    const failed = { type: 'done', job: 1, ok: false, code: 'TEMPER_SANDBOX_EXCEPTION', message: 'm', usage: USAGE };
    assert.deepEqual(parseRunnerFrame(JSON.stringify(failed)), failed);
  });

  for (const [name, frame] of Object.entries({
    'a failure that only the supervisor may report': {
      ...DONE,
      ok: false,
      code: 'TEMPER_SANDBOX_CRASHED',
      message: 'm',
    },
    'a code that is not a sandbox failure': { ...DONE, ok: false, code: 'TEMPER_POLICY_DENIED', message: 'm' },
    'an output that is not text': { ...DONE, output: { a: 1 } },
    'a job that is not a number': { ...DONE, job: '1' },
    'a negative count': { ...DONE, usage: { ...USAGE, hostCalls: -1 } },
    'a missing usage': { type: 'done', job: 1, ok: true, output: '1' },
    'a function that does not exist': { type: 'call', job: 1, call: 1, api: 'exec', input: '{}' },
    'a list': [DONE],
    'a kind that is inherited': { type: 'toString' },
  })) {
    it(`parseRunnerFrame refuses ${name}`, () => assert.equal(parseRunnerFrame(JSON.stringify(frame)), undefined));
  }

  it('parseRunnerFrame never throws', () => {
    check(property(string(), (text) => void parseRunnerFrame(text)));
    check(property(json(), (text) => void parseRunnerFrame(text)));
    const field = constantFrom('type', 'job', 'ok', 'output', 'usage', 'code', 'message');
    check(
      property(
        field,
        json(),
        (name, text) => void parseRunnerFrame(JSON.stringify({ ...DONE, [name]: JSON.parse(text) })),
      ),
    );
  });
});
