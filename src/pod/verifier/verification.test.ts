import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { VerificationWork } from '../../gateway-api/pod-api.ts';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import { systemClock } from '../../lib/clock.ts';
import type { JobOutcome, Sandbox } from '../../sandbox/port.ts';
import { createSupervisor, type Supervisor } from '../../sandbox/supervisor.ts';
import { artifactDigest } from '../../tempering/registry/serialization.ts';
import { anArtifact, anOp } from '../../tempering/tempering.testing.ts';
import type { RunOutput } from '../../tempering/verification/verification-case.ts';
import { runVerification } from './verification.ts';

const USAGE = { milliseconds: 1, heapBytes: 1, hostCalls: 0 };

function work(changes: Partial<VerificationWork> = {}, ...values: number[]): VerificationWork {
  const cases = values.map((value) => ({ input: { value }, fixtures: [] }));
  return { attempt: 'a-1', round: 0, artifact: { ...anArtifact(), tests: [] }, dependencies: [], cases, ...changes };
}

const codes = (runs: readonly RunOutput[]) => runs.map((run) => (run.ok ? 'ok' : run.code));
const sandboxOf = (run: () => JobOutcome): Sandbox => ({ run: async () => run() });

describe('the verification of a verifier pod', () => {
  let supervisor: Supervisor;
  before(async () => {
    supervisor = await createSupervisor({ clock: systemClock, warm: 1 });
  });
  after(() => supervisor[Symbol.asyncDispose]());

  it('each case is run twice, also through the tools that a composed tool pins', async () => {
    const deps = { sandbox: supervisor, clock: systemClock };
    const { attempt, outputs } = await runVerification(work({}, 1, 3), deps, anOp());
    assert.equal(attempt, 'a-1');
    const gives = (result: number): RunOutput => ({ ok: true, output: { result } });
    assert.deepEqual(outputs, [
      [gives(2), gives(2)],
      [gives(6), gives(6)],
    ]);
    const pin = `double@${artifactDigest(anArtifact())}`;
    const steps = [{ name: 'one', tool: pin, inputMapping: '{"value":"$input.value"}' }];
    const artifact = { ...anArtifact('chain', { implementation: { mode: 'Compose', steps } }), tests: [] };
    const dependencies = [{ digest: artifactDigest(anArtifact()), artifact: { ...anArtifact(), tests: [] } }];
    const composed = await runVerification(work({ artifact, dependencies }, 4), deps, anOp());
    assert.deepEqual(composed.outputs, [[gives(8), gives(8)]]);
    const missing = await runVerification(work({ artifact }, 4), deps, anOp());
    assert.deepEqual(missing.outputs.map(codes), [['TEMPER_TOOL_NOT_FOUND', 'TEMPER_TOOL_NOT_FOUND']]);
  });

  it('outputs that the gateway would not accept become failures of their case', async () => {
    const big = { text: 'x'.repeat(1_000_000) };
    const many = Array.from({ length: 150_000 }, () => 1);
    let deep: unknown = 1;
    for (let level = 0; level < 120; level += 1) deep = [deep];
    for (const [output, accepted] of [
      [big, 4],
      [many, 2],
      [deep, 0],
    ] as const) {
      const sandbox = sandboxOf(() => ({ ok: true, output: output as never, usage: USAGE }));
      const { outputs } = await runVerification(work({}, 1, 2, 3), { sandbox, clock: systemClock }, anOp());
      const flat = outputs.flatMap(codes);
      assert.deepEqual([flat.length, flat.filter((code) => code === 'ok').length], [6, accepted]);
      assert.ok(Buffer.byteLength(JSON.stringify(outputs)) < 8_000_000);
    }
  });

  it('cases beyond the time of the verification are failures, so the outputs name every case', async () => {
    const clock = new FakeClock();
    const sandbox: Sandbox = {
      run: async () => {
        await clock.advance(40);
        return { ok: true, output: 1, usage: USAGE };
      },
    };
    const op = { ...anOp(), deadline: clock.monotonic() + 100 };
    const { outputs } = await runVerification(work({}, 1, 2, 3), { sandbox, clock }, op);
    assert.deepEqual(outputs.map(codes), [
      ['ok', 'ok'],
      ['ok', 'ok'],
      ['TEMPER_TIMEOUT', 'TEMPER_TIMEOUT'],
    ]);
  });
});
