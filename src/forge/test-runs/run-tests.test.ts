import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { systemClock } from '../../lib/clock.ts';
import type { JobOutcome } from '../../sandbox/port.ts';
import { createSchemaCompiler } from '../../tools/json-schema/compiler.ts';
import { anOp, denyingHost } from '../forge.testing.ts';
import { parseArtifact, type ParsedArtifact } from '../parse-artifact.ts';
import { runTests } from './run-tests.ts';

const usage = { milliseconds: 1, heapBytes: 1, hostCalls: 0 };
const right: JobOutcome = { ok: true, output: { result: 4 }, usage };
const lost: JobOutcome = { ok: false, code: 'TEMPER_SANDBOX_CRASHED', message: 'the connection was lost', usage };

/** A tool with one test, which runs twice, in a sandbox with these outcomes, one after the other. */
async function resultsOf(outcomes: readonly JobOutcome[]) {
  const open = parseArtifact({
    name: 'double',
    description: 'Doubles a number.',
    inputSchema: '{}',
    outputSchema: '{}',
    implementation: { mode: 'Sandbox', source: 'function execute(input) { return { result: input.value * 2 }; }' },
    tests: [{ input: '{"value":2}', expectedOutput: '{"result":4}' }],
    requires: { apis: [], domains: [], paths: [] },
    limits: { duration: '1s', memory: '64Mi' },
  }) as ParsedArtifact;
  let runs = 0;
  const sandbox = { run: async () => outcomes[runs++] ?? assert.fail('a run too many') };
  const environment = {
    sandbox,
    clock: systemClock,
    schemas: createSchemaCompiler(),
    concurrency: 1,
    view: { list: () => [], find: () => undefined } as never,
    invoke: () => assert.fail('no step is called'),
    host: denyingHost,
  };
  const results = await runTests(open, environment, anOp());
  return { runs, results: results.map(({ passed, failure }) => failure?.code ?? passed) };
}

describe('runTests', () => {
  it('a run whose sandbox was lost is repeated', async () => {
    assert.deepEqual(await resultsOf([lost, right, right]), { runs: 3, results: [true, true] });
  });

  it('a tool that ends its process ends the runs', async () => {
    assert.deepEqual(await resultsOf([lost, lost]), { runs: 2, results: ['TEMPER_SANDBOX_CRASHED'] });
    assert.deepEqual(await resultsOf([right, lost, lost]), { runs: 3, results: [true, 'TEMPER_SANDBOX_CRASHED'] });
  });
});
