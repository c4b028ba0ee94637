import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { after, before, it } from 'node:test';
import { type ManifestProblem, createManifestLoader } from './manifests.ts';

/** Test support for invalid manifests: tables of invalid inputs with the expected finding. */

const SAMPLES = resolve(import.meta.dirname, '../../manifests/samples');

export const AGENT = `apiVersion: temper.dev/v1alpha1
kind: Agent
metadata: {name: a}
spec:
  trustPolicyRef: {name: p}
  model: {primary: openai/gpt-4o-mini}
  prompt: {system: Be kind.}
`;

export const POLICY = `apiVersion: temper.dev/v1alpha1
kind: TrustPolicy
metadata: {name: p}
spec:
`;

interface ExpectedFinding {
  /** Describes the violation, for the test name. */
  name: string;
  field: string;
  rule: string;
  fix: RegExp;
}

export interface BadText extends ExpectedFinding {
  text: string;
  line: number;
}

/** A sample manifest with one change that makes it invalid. */
export interface ChangedSample extends ExpectedFinding {
  sample: string;
  from: string | RegExp;
  to: string;
}

/** Creates a function that validates manifest text. Call inside `describe`. */
export function manifestReader(): (text: string) => Promise<ManifestProblem[]> {
  const loader = createManifestLoader();
  let folder = '';
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-bad-'));
  });
  after(async () => {
    await rm(folder, { recursive: true });
  });
  return async (text) => {
    const file = join(folder, 'manifest.yaml');
    await writeFile(file, text);
    return (await loader.load([file])).problems;
  };
}

export function itRefusesTexts(cases: readonly BadText[], read: (text: string) => Promise<ManifestProblem[]>): void {
  for (const expected of cases) {
    void it(`with ${expected.name} violates rule ${expected.rule} at the right line`, async () => {
      assert.equal(problemOf(await read(expected.text), expected).line, expected.line);
    });
  }
}

export function itRefusesSamples(
  cases: readonly ChangedSample[],
  read: (text: string) => Promise<ManifestProblem[]>,
): void {
  for (const expected of cases) {
    void it(`with ${expected.name} violates rule ${expected.rule}`, async () => {
      const original = await readFile(join(SAMPLES, expected.sample), 'utf8');
      const changed = original.replace(expected.from, expected.to);
      assert.notEqual(changed, original);
      problemOf(await read(changed), expected);
    });
  }
}

function problemOf(problems: ManifestProblem[], { field, rule, fix }: ExpectedFinding): ManifestProblem {
  const found = problems.find((problem) => problem.field === field && problem.rule === rule);
  assert.ok(found !== undefined, `no ${rule} at ${field} in ${JSON.stringify(problems, null, 1)}`);
  assert.match(found.fix, fix);
  assert.ok(found.message.length > 0 && found.file.endsWith('manifest.yaml'));
  return found;
}
