import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import { systemClock } from '../../lib/clock.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import type { JobOutcome } from '../../sandbox/port.ts';
import { createSupervisor, type Supervisor } from '../../sandbox/supervisor.ts';
import { createSchemaCompiler } from '../../tools/json-schema/compiler.ts';
import { createToolView } from '../../tools/view.ts';
import { artifactDigest } from '../registry/serialization.ts';
import { anArtifact, anOp } from '../tempering.testing.ts';
import type { Verifier } from '../types.ts';
import { createVerifier, type VerifierDeps } from './verifier.ts';

let supervisor: Supervisor;
before(async () => {
  supervisor = await createSupervisor({ clock: systemClock, warm: 1 });
});
after(() => supervisor[Symbol.asyncDispose]());

function aVerifier(changes: Partial<VerifierDeps> = {}, dependencies: ToolArtifact[] = []): Verifier {
  return createVerifier({
    openSandbox: async () => ({ sandbox: supervisor, close: async () => undefined }),
    dependency: (digest) => dependencies.find((artifact) => artifactDigest(artifact) === digest),
    view: createToolView(),
    invoke: async (tool) => ({
      ok: false,
      tool,
      error: { code: 'TEMPER_TOOL_NOT_FOUND', message: 'nothing here' },
      milliseconds: 0,
    }),
    host: { call: () => Promise.reject(new TemperError('TEMPER_HOST_CALL_DENIED', 'nothing here')) },
    schemas: createSchemaCompiler(),
    clock: systemClock,
    ...changes,
  });
}

function withSource(source: string, changes: Partial<ToolArtifact> = {}): ToolArtifact {
  return anArtifact('double', { implementation: { mode: 'Sandbox', source }, ...changes });
}

describe('the verifier', () => {
  it('the verifier runs tests and inputs in separate runners and closes them', async () => {
    const opened: { closed: boolean; pids: readonly number[] }[] = [];
    const verifier = aVerifier({
      openSandbox: async () => {
        const own = await createSupervisor({ clock: systemClock, warm: 1 });
        const entry = { closed: false, pids: own.processes };
        opened.push(entry);
        return {
          sandbox: own,
          close: async () => {
            entry.closed = true;
            await own[Symbol.asyncDispose]();
          },
        };
      },
    });
    assert.deepEqual(await verifier.tests(anArtifact(), anOp()), { passed: 1, failed: 0, problems: [] });
    assert.deepEqual(await verifier.outputs(anArtifact(), [{ value: 1 }, { value: 3 }], anOp()), [
      { ok: true, output: { result: 2 } },
      { ok: true, output: { result: 6 } },
    ]);
    assert.deepEqual(
      opened.map(({ closed }) => closed),
      [true, true],
    );
    for (const { pids } of opened) for (const pid of pids) assert.ok(!supervisor.processes.includes(pid));
  });
  it('the verifier detects a failing test and an output that violates its schema', async () => {
    const wrong = await aVerifier().tests(
      withSource('function execute(input) { return { result: input.value * 3 }; }'),
      anOp(),
    );
    assert.equal(wrong.failed, 1);
    assert.match(wrong.problems[0] ?? '', /expected/);
    const bad = withSource('function execute() { return { result: "four" }; }', { tests: [{ input: '{"value":2}' }] });
    assert.equal((await aVerifier().tests(bad, anOp())).failed, 1);
  });
  it('the verifier detects undeclared nondeterminism between two runs of one input', async () => {
    let runs = 0;
    const usage = { milliseconds: 1, heapBytes: 1, hostCalls: 0 };
    const run = async (): Promise<JobOutcome> => ({ ok: true, output: { result: (runs += 1) }, usage });
    const verifier = aVerifier({ openSandbox: async () => ({ sandbox: { run }, close: async () => undefined }) });
    const [varying] = await verifier.outputs(anArtifact(), [{ value: 1 }], anOp());
    assert.ok(varying?.ok === false && varying.code === 'TEMPER_FORGE_NONDETERMINISTIC');
    const declared = anArtifact('double', { requires: { apis: ['random'], domains: [], paths: [] } });
    assert.equal((await verifier.outputs(declared, [{ value: 1 }], anOp()))[0]?.ok, true);
  });
  it('a killed run fails only its own input', async () => {
    const trap = withSource('function execute(input) { while (input.value === 1) {} return { result: 0 }; }', {
      limits: { duration: '300ms', memory: '64Mi' },
    });
    const outcomes = await aVerifier().outputs(trap, [{ value: 1 }, { value: 2 }], anOp());
    assert.deepEqual(outcomes[1], { ok: true, output: { result: 0 } });
    assert.ok(outcomes[0]?.ok === false && outcomes[0].code === 'TEMPER_SANDBOX_TIMEOUT');
  });
  it('the verifier runs the pinned tools of a composed tool in the same fresh sandbox', async () => {
    const double = anArtifact();
    const pin = `double@${artifactDigest(double)}`;
    const composed = anArtifact('quadruple', {
      implementation: {
        mode: 'Compose',
        steps: [
          { name: 'one', tool: pin, inputMapping: '{"value":"$input.value"}' },
          { name: 'two', tool: pin, inputMapping: '{"value":"$prev.result"}' },
        ],
      },
      tests: [{ input: '{"value":2}', expectedOutput: '{"result":8}' }],
    });
    const verifier = aVerifier({}, [double]);
    assert.deepEqual(await verifier.tests(composed, anOp()), { passed: 1, failed: 0, problems: [] });
    assert.deepEqual(await verifier.outputs(composed, [{ value: 5 }], anOp()), [{ ok: true, output: { result: 20 } }]);
    const [gone] = await aVerifier().outputs(composed, [{ value: 5 }], anOp());
    assert.ok(gone?.ok === false && gone.code === 'TEMPER_TOOL_NOT_FOUND');
  });
  it('the verifier throws when the sandbox is unavailable', async () => {
    const none = {
      ok: false,
      code: 'TEMPER_SANDBOX_UNAVAILABLE',
      message: 'none',
      usage: { milliseconds: 0, heapBytes: 0, hostCalls: 0 },
    } as const;
    const verifier = aVerifier({
      openSandbox: async () => ({ sandbox: { run: async () => none }, close: async () => undefined }),
    });
    const unavailable = (error: unknown): boolean => isTemperError(error, 'TEMPER_SANDBOX_UNAVAILABLE');
    await assert.rejects(verifier.tests(anArtifact(), anOp()), unavailable);
    await assert.rejects(verifier.outputs(anArtifact(), [{ value: 1 }], anOp()), unavailable);
  });
});
