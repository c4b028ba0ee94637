import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { digestOf } from '../../lib/canonical.ts';
import { anArtifact } from '../../tempering/tempering.testing.ts';
import type { RecordedInput } from '../../tempering/types.ts';
import { compareVerification, expectedReruns } from './verification.ts';

const ATTEMPT = 'attempt-1';
const tool = { artifact: anArtifact() };

function recorded(value: number | string): RecordedInput {
  const input = { value };
  const output = digestOf({ result: Number(value) * 2 });
  return { digest: digestOf(input), root: String(value), input, output, answers: 'none' };
}

describe('the comparison of re-runs with what a pod reported', () => {
  it('a use with an input that the schema refuses is a contradicted report, also when its output comes again', () => {
    const inputs = [recorded(1), recorded('2')];
    const run = (result: number) => ({ ok: true, output: { result } });
    const outputs = [4, 2, 4].map((result) => [run(result), run(result)]);
    const sent = { attempt: ATTEMPT, round: 0, outputs };
    const expected = expectedReruns(tool.artifact, inputs);
    const result = compareVerification({ tool, attempt: ATTEMPT, recorded: expected }, sent);
    assert.ok(result.kind === 'figures', JSON.stringify(result));
    assert.deepEqual(result.contradicted, { tests: 0, uses: 1 });
    assert.deepEqual([result.figures.reruns, result.figures.successes, result.figures.distinctInputs], [2, 1, 1]);
  });
});
