import type { ToolCandidate } from '../../../src/forge/types.ts';
import { digestOf } from '../../../src/lib/canonical.ts';
import { anArtifact } from '../../../src/tempering/tempering.testing.ts';

const NONCE = '{{user | after "-----BEGIN " | before "-----"}}';
/** The answer of a scripted judge. */
export const judgeAnswer = (approved: boolean) =>
  JSON.stringify({
    nonce: 'NONCE',
    lines: [4],
    safety: { passed: approved, concerns: approved ? [] : ['it looks around'] },
    correctness: { passed: true, failedTests: [] },
    determinism: { likely: true, reasoning: '' },
    bounded: { likely: true, reasoning: '' },
    confidence: 0.9,
    approved,
    reasoning: approved ? 'fine' : 'no',
  }).replace('NONCE', () => NONCE);

/** The answer of a scripted reviewer. */
export const reviewerAnswer = (approved: boolean) =>
  JSON.stringify({ nonce: 'NONCE', lines: [4], approved, confidence: 0.9, reasoning: 'read' }).replace(
    'NONCE',
    () => NONCE,
  );

/** The answer of a scripted tester: each input is doubled, with `offset` added. */
export const testerAnswer = (offset = 0) =>
  JSON.stringify({
    nonce: 'NONCE',
    lines: [4],
    cases: [21, 22, 23, 24].map((value) => ({
      input: JSON.stringify({ value }),
      expected: JSON.stringify({ result: 2 * value + offset }),
    })),
  }).replace('NONCE', () => NONCE);

export const reviewModels = (url: string) => ({
  providers: [{ name: 'replay', type: 'openai', baseUrl: `${url}/v1` }],
  aliases: {
    'default/default': 'replay/scripted',
    'default/judge': 'replay/judge',
    'default/strict': 'replay/strict',
    'default/failing': 'replay/failing',
    'default/easy': 'replay/easy',
  },
});

export function aCandidate(name: string, changes: Parameters<typeof anArtifact>[1] = {}): ToolCandidate {
  const tests = [1, 2, 3].map((value) => ({ input: `{"value":${value}}`, expectedOutput: `{"result":${2 * value}}` }));
  const artifact = anArtifact(name, { tests, ...changes });
  const runs = artifact.tests.flatMap((_, index) =>
    ([1, 2] as const).map((run) => ({
      case: index + 1,
      run,
      passed: true,
      got: null,
      milliseconds: 1,
      heapBytes: 1_024,
    })),
  );
  const evidence = { tests: runs, milliseconds: 1, heapBytes: 1_024, warnings: [] };
  return { artifact, digest: digestOf(artifact), evidence, gates: [{ gate: 'build', passed: true, note: 'built' }] };
}
