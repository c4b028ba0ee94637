import assert from 'node:assert/strict';
import { mkdir, mkdtempDisposable, readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { it } from 'node:test';
import { AGENT_PROGRAM_NUMBERS } from '../../api/cluster.ts';
import { SandboxPrograms } from './programs.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const PROGRAM = {
  name: 'fixture',
  folder: ROOT,
  program: join(ROOT, 'test/fixtures/acp-agent/agent.ts'),
  arguments: [],
  environment: {},
};

it('a process of an agent program that is stopped before it runs ends, and the next one can start', {
  timeout: 120_000,
}, async (t) => {
  await using homes = await mkdtempDisposable(join(tmpdir(), 'temper-homes-'));
  for (const number of AGENT_PROGRAM_NUMBERS) await mkdir(join(homes.path, String(number)));
  let onExit = (_id: number): void => undefined;
  const programs = new SandboxPrograms({ program: PROGRAM, homes: homes.path }, (frame) => {
    if (frame.type === 'exited') onExit(frame.id);
    return true;
  });
  t.after(() => programs.endAll());
  for (let id = 1; id <= AGENT_PROGRAM_NUMBERS.length + 1; id += 1) {
    const exited = new Promise<number>((resolve) => (onExit = resolve));
    const started = programs.start(id);
    programs.stop(id);
    await started;
    assert.equal(await exited, id);
    for (const number of AGENT_PROGRAM_NUMBERS) assert.deepEqual(await readdir(join(homes.path, String(number))), []);
  }
});
