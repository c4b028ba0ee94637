import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Json } from '../../lib/json.ts';
import { parseJob, parseOutcome } from './frame-fields.ts';

const LIMITS = { durationMilliseconds: 1, memoryBytes: 1, outputBytes: 1, hostCalls: 1, hostBytes: 1 };
const JOB = { language: 'javascript', source: 'x', input: {}, apis: ['clock'], limits: LIMITS };
const SEED = '00112233445566778899aabbccddeeff';
const USAGE = { milliseconds: 1, heapBytes: 1, hostCalls: 1 };

describe('the members of frames between the containers of a pod', () => {
  it('a job has its time and seed in the sandbox container as the agent container chose them', () => {
    for (const timeAndRandomness of [
      { startTime: 1, seed: SEED },
      { startTime: 1, seed: SEED, answerTimes: [2, 3] },
    ]) {
      assert.deepEqual(parseJob({ ...JOB, timeAndRandomness }), { ...JOB, timeAndRandomness });
    }
    assert.deepEqual(parseJob(JOB), JOB);
  });

  it('a job with a malformed time or seed is refused, never run with other values', () => {
    const malformed: Json[] = [
      null,
      {},
      { startTime: -1, seed: SEED },
      { startTime: 1.5, seed: SEED },
      { startTime: 1, seed: SEED.toUpperCase() },
      { startTime: 1, seed: `${SEED}0` },
      { startTime: 1, seed: SEED, answerTimes: ['2'] },
      { startTime: 1, seed: SEED, answerTimes: Array<number>(1_001).fill(1) },
    ];
    for (const timeAndRandomness of malformed) assert.equal(parseJob({ ...JOB, timeAndRandomness }), undefined);
  });

  it('an outcome brings the answers of its host calls, and a malformed list of them is refused', () => {
    const outcome = (answers: Json) => ({ ok: true as const, output: 1, usage: { ...USAGE, answers } });
    const answers = [
      { call: 2, time: 5 },
      { call: 1, time: 6 },
    ];
    assert.deepEqual(parseOutcome(outcome(answers)), outcome(answers));
    for (const malformed of [
      {},
      [1],
      [{ call: 1 }],
      [{ call: 1, time: -1 }],
      Array<Json>(1_001).fill(answers[0] ?? 0),
    ]) {
      assert.equal(parseOutcome(outcome(malformed)), undefined);
    }
  });
});
