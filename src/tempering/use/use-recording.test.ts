import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Json } from '../../lib/json.ts';
import type { CallRecording, UnrecordedReason } from '../../tools/recording/call-recording.ts';
import { answerEvidence, asReported, MAX_CALLS, MAX_RECORDING_BYTES, toUseRecording } from './use-recording.ts';

function aRecording(...answers: Json[]): CallRecording {
  return { calls: answers.map((value) => ({ name: 'fetch', input: {}, answer: { ok: true, value } })) };
}

function nested(depth: number): Json {
  let value: Json = 1;
  for (let level = 0; level < depth; level += 1) value = [value];
  return value;
}

describe('the recording of a use', () => {
  it('a recording within the limits is stored with the evidence of its calls', () => {
    const stored = toUseRecording(aRecording({ body: 'ok' }), 'observed');
    assert.ok(stored.ok);
    assert.deepEqual(stored.recording.calls, [
      { name: 'fetch', input: {}, answer: { ok: true, value: { body: 'ok' } }, evidence: 'observed' },
    ]);
  });

  const REFUSED: [what: string, recording: CallRecording, reason: UnrecordedReason][] = [
    ['too many calls', aRecording(...Array<Json>(MAX_CALLS + 1).fill(1)), 'TooManyCalls'],
    ['a huge answer', aRecording('x'.repeat(MAX_RECORDING_BYTES)), 'RecordingTooLarge'],
    ['an answer nested deeper than any output', aRecording(nested(300)), 'RecordingTooLarge'],
    ['an answer nested deeper than the stack', aRecording(nested(50_000)), 'RecordingTooLarge'],
    ['a lone surrogate', aRecording('\ud800'), 'NotCanonical'],
    ['a provider key in an answer', aRecording({ body: `the key\nghp_${'a1B2'.repeat(10)}\n` }), 'ContainsSecret'],
    ['a password in an answer', aRecording({ password: 'correct horse' }), 'ContainsSecret'],
    [
      'a key in an argument',
      { calls: [{ name: 'fetch', input: { headers: { authorization: `Bearer ghp_${'a1B2'.repeat(10)}` } } }] },
      'ContainsSecret',
    ],
  ];
  for (const [what, recording, reason] of REFUSED) {
    it(`a recording with ${what} is not stored, and says why`, () => {
      assert.deepEqual(toUseRecording(recording, 'observed'), { ok: false, reason });
    });
  }

  it('a recording from a pod is observed only where a gateway carried the call, and its limits are checked again', () => {
    const observed = toUseRecording(aRecording(1), 'observed');
    const reported = asReported(observed, () => false);
    assert.ok(reported.ok);
    assert.deepEqual(
      reported.recording.calls.map(({ evidence }) => evidence),
      ['reported'],
    );
    const carried = asReported(toUseRecording(aRecording(1, 2), 'observed'), ({ answer }) => {
      return answer?.ok === true && answer.value === 2;
    });
    assert.ok(carried.ok);
    assert.deepEqual(
      carried.recording.calls.map(({ evidence }) => evidence),
      ['reported', 'observed'],
    );
    const secret = aRecording({ password: 'correct horse' });
    const calls = secret.calls.map((call) => ({ ...call, evidence: 'observed' as const }));
    assert.deepEqual(
      asReported({ ok: true, recording: { calls } }, () => true),
      { ok: false, reason: 'ContainsSecret' },
    );
  });

  it('one reported answer makes the whole recording reported; time and randomness have the evidence of the use', () => {
    const call = { name: 'fetch', input: {} };
    const observed = { ...call, evidence: 'observed' } as const;
    const reported = { ...call, evidence: 'reported' } as const;
    const sandbox = { startTime: 0, seed: '', answers: [] };
    assert.equal(answerEvidence(undefined, 'reported'), 'none');
    assert.equal(answerEvidence({ calls: [observed] }, 'reported'), 'observed');
    assert.equal(answerEvidence({ calls: [observed, reported] }, 'observed'), 'reported');
    assert.equal(answerEvidence({ calls: [observed], sandbox }, 'reported'), 'reported');
    assert.equal(answerEvidence({ calls: [observed], sandbox }, 'observed'), 'observed');
  });
});
