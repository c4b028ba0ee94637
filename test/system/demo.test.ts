import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { dollars, independentAnswer } from '../../manifests/quickstart/independent.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { startReplay } from '../../src/models/replay/server.ts';
import { writeOrders } from '../../manifests/quickstart/make-data.ts';
import { plainEnvironment, QUICKSTART, ROOT, temper, temporaryFolder } from './command.ts';

async function demo(cwd: string, ...args: string[]): Promise<{ code: number | null; stdout: string }> {
  const child = spawn(join(ROOT, 'bin/node'), [join(QUICKSTART, 'demo.ts'), ...args], {
    cwd,
    env: plainEnvironment(),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let stdout = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
  });
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stdout };
}

async function workspaceIn(folder: string): Promise<string> {
  const workspace = join(folder, 'workspace');
  for (const part of ['data', 'samples']) await cp(join(QUICKSTART, part), join(workspace, part), { recursive: true });
  return workspace;
}

describe('the quick start', () => {
  it('the checked-in data equals the output of its script', async () => {
    await using folder = await temporaryFolder();
    await writeOrders(folder.path);
    for (const month of ['04', '05', '06', '07', '08', '09']) {
      const name = `orders-2026-${month}.csv`;
      assert.equal(
        await readFile(join(QUICKSTART, 'data', name), 'utf8'),
        await readFile(join(folder.path, name), 'utf8'),
        name,
      );
    }
  });

  it('the demo forges, rejects, repairs and promotes tools and computes the correct answer', async () => {
    await using folder = await temporaryFolder();
    const state = join(folder.path, 'state');
    const { code, stdout } = await demo(ROOT, await workspaceIn(folder.path), state);
    assert.equal(code, 0, stdout);
    assert.match(stdout, /forges\s+csv_rows/);
    assert.match(stdout, /reported to the agent, nothing registered/);
    assert.match(stdout, /→ sum_paid_orders@[0-9a-f]{8} {2}tier Session/);
    assert.match(stdout, /csv_rows .*→ tier Agent/);
    assert.match(stdout, /◂ analyst: West fell most/);
    assert.match(stdout, /✓ checked against an independent computation/);
    const tools = await temper(['get', 'tools', '--state', state]);
    assert.match(tools.stdout, /csv_rows +Agent +true/);
  });

  for (const type of ['anthropic', 'openai-responses', 'openai-compatible']) {
    it(`the quick start runs with the wire format of ${type} from a providers file`, async () => {
      await using folder = await temporaryFolder();
      await using replay = await startReplay({ script: join(QUICKSTART, 'replay.yaml'), clock: systemClock });
      const baseUrl = type === 'anthropic' ? replay.url : `${replay.url}/v1`;
      const names = ['default', 'judge', 'safety', 'correctness'];
      const aliases = Object.fromEntries(names.map((name) => [`default/${name}`, `p/${name}`]));
      const providers = join(folder.path, 'providers.yaml');
      await writeFile(
        providers,
        JSON.stringify({ providers: [{ name: 'p', type, baseUrl }], aliases, judges: { canaryPercent: 0 } }),
      );
      const { code, stdout, stderr } = await temper([
        'run',
        ...['agent.yaml', 'policy.yaml'].flatMap((file) => ['-f', join(QUICKSTART, file)]),
        ...['April?', 'May and June?', 'Which fell most?'].flatMap((question) => ['-m', question]),
        '--providers',
        providers,
        '--workspace',
        QUICKSTART,
        '--state',
        join(folder.path, 'state'),
        '--output',
        'text',
      ]);
      assert.equal(code, 0, stderr);
      const [most] = await independentAnswer(join(QUICKSTART, 'data'));
      assert.ok(most !== undefined && stdout.includes(dollars(most.before - most.after)), stdout);
      assert.match(stdout, /csv_rows .*→ tier Agent/);
      assert.ok(replay.requests.every(({ path }) => path === replay.requests[0]?.path));
    });
  }

  it('the demo computes its answer from the files, and leaves the state folder of other runs alone', async () => {
    await using folder = await temporaryFolder();
    const other = join(folder.path, '.temper', 'precious.txt');
    await mkdir(join(folder.path, '.temper'));
    await writeFile(other, 'keep');
    const workspace = await workspaceIn(folder.path);
    const file = join(workspace, 'data', 'orders-2026-04.csv');
    const lines = (await readFile(file, 'utf8')).split('\n');
    const at = lines.findIndex((line) => line.includes(',East,') && line.endsWith(',129.50,paid'));
    lines[at] = (lines[at] ?? '').replace(/,129\.50,paid$/, ',29129.50,paid');
    const [before] = await independentAnswer(join(workspace, 'data'));
    await writeFile(file, lines.join('\n'));
    const [after] = await independentAnswer(join(workspace, 'data'));
    assert.ok(before !== undefined && after !== undefined);
    assert.notDeepEqual(after, before);
    const { code, stdout } = await demo(folder.path, workspace);
    assert.equal(code, 0, stdout);
    assert.equal(await readFile(other, 'utf8'), 'keep');
    const reply = stdout.slice(stdout.lastIndexOf('◂'));
    assert.ok(reply.includes(after.region) && reply.includes(dollars(after.before - after.after)), reply);
    assert.ok(!reply.includes(dollars(before.before - before.after)), reply);
  });
});
