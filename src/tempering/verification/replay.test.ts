import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import { createForgedTool } from '../../forge/forged-tool.ts';
import { digestOf, sha256 } from '../../lib/canonical.ts';
import { systemClock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import type { JsonObject } from '../../lib/json.ts';
import type { HostCalls } from '../../sandbox/port.ts';
import { createSupervisor, type Supervisor } from '../../sandbox/supervisor.ts';
import type { NestedCall, ToolDescriptor } from '../../tools/contract.ts';
import { deniedHostCalls } from '../../tools/host/host-calls.ts';
import { createSchemaCompiler } from '../../tools/json-schema/compiler.ts';
import { CallRecorder } from '../../tools/recording/call-recorder.ts';
import { createToolView } from '../../tools/view.ts';
import { artifactDigest } from '../registry/serialization.ts';
import { anArtifact, aCaller, anOp } from '../tempering.testing.ts';
import type { EvidencedCall, RecordedInput, RerunOutcome } from '../types.ts';
import { toUseRecording } from '../use/use-recording.ts';
import { createVerifier } from './verifier.ts';

const ANY = '{"properties":{},"type":"object"}';
let supervisor: Supervisor;
before(async () => {
  supervisor = await createSupervisor({ clock: systemClock, warm: 1 });
});
after(() => supervisor[Symbol.asyncDispose]());

function aSandboxTool(source: string, apis: ToolArtifact['requires']['apis']): ToolArtifact {
  return anArtifact('watcher', {
    inputSchema: ANY,
    outputSchema: '{}',
    implementation: { mode: 'Sandbox', source },
    requires: { apis, domains: ['x.test'], paths: ['**'] },
    tests: [{ input: '{}' }],
  });
}

function aComposedTool(...steps: [tool: string, inputMapping: string][]): ToolArtifact {
  return anArtifact('chain', {
    inputSchema: ANY,
    outputSchema: '{}',
    implementation: {
      mode: 'Compose',
      steps: steps.map(([tool, inputMapping], index) => ({ name: `s${index}`, tool, inputMapping })),
    },
    tests: [{ input: '{}' }],
  });
}

interface Setup {
  host?: HostCalls;
  invoke?: NestedCall;
  describe?: (tool: string) => ToolDescriptor | undefined;
}

/** Uses a tool once, as the invoker does, and returns the use in the form in which it is stored. */
async function recordedUse(artifact: ToolArtifact, input: JsonObject, setup: Setup = {}): Promise<RecordedInput> {
  const recorder = new CallRecorder();
  const tool = createForgedTool(artifact, artifactDigest(artifact), 'Session', {
    sandbox: supervisor,
    clock: systemClock,
    schemas: createSchemaCompiler(),
    hostCalls: () => setup.host ?? deniedHostCalls,
    describe: setup.describe ?? (() => undefined),
  });
  const invoke: NestedCall = setup.invoke ?? (() => Promise.reject(new Error('no step is expected')));
  const output = await tool.call(input, { ...aCaller(), stack: [], origin: 'Agent', op: anOp(), invoke, recorder });
  const { recording } = recorder;
  const stored = recording === undefined ? undefined : toUseRecording(recording, 'observed');
  assert.ok(stored?.ok !== false, JSON.stringify(stored));
  return {
    digest: digestOf(input),
    root: sha256('m-1'),
    input,
    output: digestOf(output),
    answers: stored === undefined ? 'none' : 'observed',
    ...(stored === undefined ? {} : { recording: stored.recording }),
  };
}

async function replayed(
  artifact: ToolArtifact,
  use: RecordedInput,
  dependencies: ToolArtifact[] = [],
): Promise<RerunOutcome> {
  const verifier = createVerifier({
    openSandbox: async () => ({ sandbox: supervisor, close: async () => undefined }),
    dependency: (digest) => dependencies.find((dependency) => artifactDigest(dependency) === digest),
    view: createToolView(),
    invoke: () => Promise.reject(new Error('a replay calls no tool')),
    host: { call: () => Promise.reject(new Error('a replay calls no host function')) },
    schemas: createSchemaCompiler(),
    clock: systemClock,
  });
  const [outcome] = await verifier.replay(artifact, [use], anOp());
  assert.ok(outcome !== undefined);
  return outcome;
}

function changed(use: RecordedInput, change: (calls: EvidencedCall[]) => EvidencedCall[]): RecordedInput {
  assert.ok(use.recording !== undefined);
  return { ...use, recording: { ...use.recording, calls: change(structuredClone(use.recording.calls)) } };
}

function assertMismatch(outcome: RerunOutcome, message: RegExp): void {
  assert.ok(!outcome.ok, JSON.stringify(outcome));
  assert.equal(outcome.code, 'TEMPER_REPLAY_MISMATCH', outcome.message);
  assert.match(outcome.message, message);
}

/** The first page answers after the second, so that the order of the answers is not that of the calls. */
function pages(): HostCalls {
  const second = Promise.withResolvers<void>();
  return {
    call: async (api, input) => {
      if (api === 'fs.readFile') throw new TemperError('TEMPER_FILE_FAILED', '"gone" does not exist');
      const url = (input as { url: string }).url;
      if (url.endsWith('1')) await second.promise;
      else second.resolve();
      return { status: 200, headers: {}, body: `page ${url.at(-1)}`, url, redirected: false };
    },
  };
}

const WATCH = `async function execute({ paths }) {
  const log = [Date.now(), Math.random(), crypto.randomUUID()];
  const read = async (path) => { const page = await fetch('https://x.test/' + path); log.push(await page.text(), Date.now()); };
  await Promise.all(paths.map(read));
  try { await fs.readFile('gone'); } catch (error) { log.push(error.code, error.message); }
  return { log };
}`;

describe('the replay of a recorded use in the sandbox', () => {
  const watcher = aSandboxTool(WATCH, ['fetch', 'fs.readFile', 'clock', 'random']);
  let use: RecordedInput;
  before(async () => {
    use = await recordedUse(watcher, { paths: [1, 2] }, { host: pages() });
  });

  it('a replay gives the output of the use: same answers in their order, same errors, same time and randomness', async () => {
    assert.deepEqual(
      use.recording?.calls.map(({ name }) => name),
      ['fetch', 'fetch', 'fs.readFile'],
    );
    assert.deepEqual(
      use.recording?.sandbox?.answers.map(({ call }) => call),
      [2, 1, 3],
    );
    const outcome = await replayed(watcher, use);
    assert.ok(outcome.ok, JSON.stringify(outcome));
    assert.equal(digestOf(outcome.output), use.output);
  });

  it('a replay fails when the recorded calls have other arguments, another function or another order', async () => {
    const other = changed(use, ([first, ...rest]) => [
      { ...(first as EvidencedCall), input: { ...(first?.input as JsonObject), url: 'https://x.test/9' } },
      ...rest,
    ]);
    assertMismatch(await replayed(watcher, other), /call 1, "fetch", has other arguments than recorded, at url/);
    const renamed = changed(use, (calls) => calls.map((call) => ({ ...call, name: 'fs.readFile' })));
    assertMismatch(await replayed(watcher, renamed), /call 1 is "fetch", recorded is "fs.readFile"/);
    const reordered = changed(use, ([first, second, ...rest]) => [second, first, ...rest] as EvidencedCall[]);
    assertMismatch(await replayed(watcher, reordered), /call 1, "fetch", has other arguments/);
  });

  it('a replay fails when the tool makes a call too many, or one too few', async () => {
    assertMismatch(
      await replayed(
        watcher,
        changed(use, (calls) => calls.slice(0, 2)),
      ),
      /call 3, "fs.readFile", is not among the recorded calls/,
    );
    const more = changed(use, (calls) => [...calls, ...calls.slice(2)]);
    assertMismatch(await replayed(watcher, more), /it made 3 of the 4 recorded calls/);
  });

  it('a replay fails when it gives another output than the use', async () => {
    assertMismatch(await replayed(watcher, { ...use, output: digestOf('another') }), /another output than the use/);
    const lie = changed(use, (calls) =>
      calls.map((call) =>
        call.name === 'fetch' && call.answer?.ok === true
          ? { ...call, answer: { ok: true, value: { ...(call.answer.value as JsonObject), body: 'lie' } } }
          : call,
      ),
    );
    assertMismatch(await replayed(watcher, lie), /another output than the use/);
  });

  it('a tool cannot hide a call that differs by catching its error', async () => {
    const careless = aSandboxTool(
      `async function execute() { try { await fetch('https://x.test/2'); } catch {} return 1; }`,
      ['fetch'],
    );
    const kept = await recordedUse(careless, {}, { host: pages() });
    assertMismatch(
      await replayed(
        careless,
        changed(kept, () => []),
      ),
      /call 1, "fetch", is not among/,
    );
  });

  it('a call that was unanswered when the tool ended stays unanswered', async () => {
    const impatient = aSandboxTool(`async function execute() { fetch('https://x.test/1'); return 1; }`, ['fetch']);
    const host: HostCalls = { call: () => new Promise(() => undefined) };
    const kept = await recordedUse(impatient, {}, { host });
    assert.equal(kept.recording?.calls[0]?.answer, undefined);
    assert.deepEqual(await replayed(impatient, kept), { ok: true, output: 1 });
  });

  it('a tool whose output depends on its input alone records nothing, and its re-run must still give the same output', async () => {
    const hasher = aSandboxTool(`function execute({ x }) { return crypto.createHash('md5').update(x).digest(); }`, [
      'crypto',
    ]);
    const kept = await recordedUse(hasher, { x: 'a' });
    assert.equal(kept.recording, undefined);
    assert.equal((await replayed(hasher, kept)).ok, true);
    assertMismatch(await replayed(hasher, { ...kept, output: digestOf('') }), /another output/);
  });
});

describe('the replay of a composed tool', () => {
  const double = anArtifact();
  const pin = `double@${artifactDigest(double)}`;
  const chain = aComposedTool(['file_read', '{"path":"$input.path"}'], [pin, '{"value":"$prev.count"}']);
  const describe = (tool: string) =>
    tool === 'double'
      ? ({ forged: { digest: artifactDigest(double), tier: 'Session', pure: true } } as ToolDescriptor)
      : undefined;
  const invoke: NestedCall = async (tool, input) =>
    tool === 'file_read'
      ? { ok: true, tool, output: { count: 21, text: (input as { path: string }).path }, milliseconds: 1 }
      : { ok: true, tool, output: { result: 2 * (input as { value: number }).value }, milliseconds: 1 };

  it('a replay answers the steps that reach outside, and runs the forged steps that do not', async () => {
    const use = await recordedUse(chain, { path: 'a.txt' }, { invoke, describe });
    assert.deepEqual(
      use.recording?.calls.map(({ name, input }) => ({ name, input })),
      [{ name: 'file_read', input: { path: 'a.txt' } }],
    );
    assert.equal(use.recording?.sandbox, undefined);
    assert.deepEqual(await replayed(chain, use, [double]), { ok: true, output: { result: 42 } });
    const wrong = {
      ...double,
      implementation: { ...double.implementation, source: 'function execute() { return 1; }' },
    };
    assert.equal((await replayed(chain, use, [wrong])).ok, false);
  });

  it('a replay fails at the step whose call differs, and at a step that was not recorded', async () => {
    const use = await recordedUse(chain, { path: 'a.txt' }, { invoke, describe });
    assertMismatch(await replayed(chain, { ...use, input: { path: 'b.txt' } }, [double]), /at path/);
    assertMismatch(
      await replayed(
        chain,
        changed(use, () => []),
        [double],
      ),
      /call 1, "file_read", is not among/,
    );
  });

  it('a step that failed in the use fails in the replay with the same code', async () => {
    const failing: NestedCall = async (tool) => ({
      ok: false,
      tool,
      error: { code: 'TEMPER_FILE_FAILED', message: '"a.txt" does not exist' },
      milliseconds: 1,
    });
    const recorder = new CallRecorder();
    recorder.startSteps();
    recorder.step('file_read', { path: 'a.txt' }, await failing('file_read', {}, anOp()));
    const stored = toUseRecording(recorder.recording ?? { calls: [] }, 'observed');
    assert.ok(stored.ok);
    const use = { digest: sha256(''), root: '', input: { path: 'a.txt' }, answers: 'observed' } as const;
    const outcome = await replayed(chain, { ...use, recording: stored.recording }, [double]);
    assert.ok(!outcome.ok && outcome.code === 'TEMPER_FILE_FAILED', JSON.stringify(outcome));
  });
});
