import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Capability } from '../../src/api/v1alpha1/capability.ts';
import { capabilityEntry } from '../../src/discovery/entry.ts';
import { anEngine, anOp, type EngineChanges } from '../../src/engine/engine.testing.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { type Json, type JsonObject, member } from '../../src/lib/json.ts';
import type { ModelEvent, ModelRequest } from '../../src/models/port.ts';
import { createSupervisor, type Supervisor } from '../../src/sandbox/supervisor.ts';
import { createProgramRunner } from '../../src/sandbox/terminal/program-runner.ts';
import { skillLibrary } from '../../src/skills/skill-library.ts';
import { createLocalTerminal } from '../../src/toolbox/terminal/local-terminal.ts';
import { buildLauncher } from '../support/launcher.ts';

const CAN = process.platform === 'linux' && (process.arch === 'x64' || process.arch === 'arm64');

/** Says what it reaches of its process and its host. */
const SUM = `const attempts = {
  environment: () => process.env.PATH,
  files: () => require('node:fs').readFileSync('/etc/hostname'),
  network: () => fetch('https://example.com/'),
  modules: () => import('node:fs'),
};
const reached = [];
for (const [name, attempt] of Object.entries(attempts)) {
  try { await attempt(); reached.push(name); } catch {}
}
return { sum: input.reduce((a, b) => a + b, 0), reached };
`;

function countScript(outside: string): string {
  return `grep -c '' data/lines.txt
cat ${outside}/secret && echo 'read outside'
echo x > ${outside}/written && echo 'wrote outside'
uname && echo 'started another program'
: > written-inside
exit 0
`;
}

function aSkill(outside: string): Capability {
  const resources = [
    { path: 'scripts/sum.mjs', text: SUM },
    { path: 'scripts/count.sh', text: countScript(outside) },
  ];
  const spec = { type: 'Skill' as const, description: 'Counts and adds.', content: 'Run the scripts.', resources };
  return { apiVersion: 'temper.dev/v1alpha1', kind: 'Capability', metadata: { name: 'numbers' }, spec };
}

/** One turn of the model: a call that it makes from the results that it has. */
type Step = (results: Json[]) => [tool: string, input: JsonObject];

/** The text of the resource that the model read last. */
function contentOf(results: Json[]): Json {
  return member(results.at(-1) ?? null, 'content') ?? null;
}

const LOAD: Step = () => ['load_tool', { name: 'numbers' }];
const READ =
  (resource: string): Step =>
  () => ['load_tool_resource', { name: 'numbers', resource }];
const COMPUTE: Step = (results) => ['code_run', { code: contentOf(results), input: [1, 2, 3] }];
const WRITE: Step = (results) => ['file_write', { path: 'count.sh', text: contentOf(results) }];
const EXECUTE: Step = () => ['shell_exec', { command: 'sh', args: ['count.sh'] }];

describe('the scripts of a skill', { skip: CAN ? false : 'needs Linux on x86_64 or aarch64', timeout: 300_000 }, () => {
  let base: string;
  let workspace: string;
  let outside: string;
  let launcher: string;
  let sandbox: Supervisor;
  before(async () => {
    base = await realpath(await mkdtemp(join(tmpdir(), 'temper-skill-scripts-')));
    [workspace, outside] = [join(base, 'workspace'), join(base, 'outside')];
    launcher = await buildLauncher(base);
    sandbox = await createSupervisor({ clock: systemClock });
  });
  after(async () => {
    await sandbox[Symbol.asyncDispose]();
    await rm(base, { recursive: true, force: true });
  });

  /** The results of the calls of a model that works with the skill. */
  async function working(steps: Step[], agent: EngineChanges['agent']): Promise<Json[]> {
    await rm(workspace, { recursive: true, force: true });
    await rm(outside, { recursive: true, force: true });
    for (const folder of [join(workspace, 'data'), outside]) await mkdir(folder, { recursive: true });
    await writeFile(join(workspace, 'data/lines.txt'), 'a\nb\nc\n');
    await writeFile(join(outside, 'secret'), 'a secret');
    let results: Json[] = [];
    const answer = (request: ModelRequest): ModelEvent[] => {
      const found = request.messages.flatMap((item) => (item.role === 'tool' ? [item] : []));
      results = found.map(({ text, isError }) => (isError ? text : (JSON.parse(text) as Json)));
      const end = {
        type: 'end',
        usage: { inputTokens: 1, outputTokens: 1, cachedInputTokens: 0 },
        model: 'x',
      } as const;
      const [name, input] = steps[found.length]?.(results) ?? [];
      if (name === undefined)
        return [
          { type: 'text', text: 'done' },
          { ...end, stopReason: 'stop' },
        ];
      const call = { id: `call-${found.length}`, name, arguments: JSON.stringify(input) };
      return [
        { type: 'tool-call', call },
        { ...end, stopReason: 'tool-calls' },
      ];
    };
    const skills = [aSkill(outside)];
    const runner = createProgramRunner({ clock: systemClock, launcher, memoryMebibytes: 256 });
    const { engine } = await anEngine(
      { workspace, sandbox },
      {
        agent: { forge: { enabled: false }, ...agent },
        policy: { level: { initial: 'standard' }, autonomy: 'Full' },
        level: 'standard',
        answer,
        agents: {
          skills: skillLibrary(() => skills),
          catalog: () => skills.map(capabilityEntry),
          terminal: createLocalTerminal({ runner, workspace, environment: {} }),
        },
      },
    );
    await engine.handle({ session: 's-1', text: 'go' }, anOp());
    await engine.stop();
    assert.equal(results.length, steps.length);
    return results;
  }

  it('a script in JavaScript runs with code_run and reaches neither a file nor a host', async () => {
    const results = await working([LOAD, READ('scripts/sum.mjs'), COMPUTE], { grants: { tools: ['code_run'] } });
    assert.deepEqual(member(results[0] ?? null, 'scripts'), [
      { path: 'scripts/sum.mjs', tool: 'code_run', available: true },
      { path: 'scripts/count.sh', tool: 'shell_exec', available: false },
    ]);
    assert.deepEqual(member(results[2] ?? null, 'value'), { sum: 6, reached: [] });
  });

  it('a script for a shell runs with shell_exec and reaches nothing outside the workspace, and no program without a grant', async () => {
    const grants = { tools: ['file_write', 'shell_exec'], shell: ['sh *', 'cat *', 'grep *'] };
    const results = await working([LOAD, READ('scripts/count.sh'), WRITE, EXECUTE], { grants });
    const ran = results[3] ?? null;
    assert.deepEqual([member(ran, 'exitCode'), member(ran, 'stdout')], [0, '3\n'], JSON.stringify(ran));
    assert.deepEqual(await readdir(outside), ['secret']);
    assert.ok((await readdir(workspace)).includes('written-inside'), 'the script ran to its end');
  });

  it('to load a skill and its scripts runs none of them, and without the tools nothing does', async () => {
    const steps = [LOAD, READ('scripts/count.sh'), WRITE, EXECUTE, READ('scripts/sum.mjs'), COMPUTE];
    const results = await working(steps, { grants: { tools: ['file_write'] } });
    const scripts = member(results[0] ?? null, 'scripts') as Json[];
    assert.deepEqual(
      scripts.map((script) => member(script, 'available')),
      [false, false],
    );
    for (const result of [results[3], results[5]]) assert.match(JSON.stringify(result), /TEMPER_POLICY_DENIED/);
    assert.deepEqual((await readdir(workspace)).toSorted(), ['count.sh', 'data']);
  });
});
