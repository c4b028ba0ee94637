import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { systemClock } from '../../src/lib/clock.ts';
import type { SessionCall } from '../../src/sandbox/session-port.ts';
import { createSupervisor } from '../../src/sandbox/supervisor.ts';
import { SESSION_LIMITS } from '../../test/contracts/code-sessions.ts';
import { callOptions } from '../../test/support/call-options.ts';
import { quantile } from '../baseline/baseline.ts';
import type { BenchRow } from '../row.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const RUNS = 300;
const CALLS = 3;
const QUESTION = 'How many orders were paid in April, and what were they worth?';
const PROGRAM = `let sum = 0;
for (const n of [1, 2, 3]) sum += (await ctx.manager.invoke('add', { n, sum })).n;
memory.sum = sum;
return sum;`;

export async function benchCodeMode(): Promise<BenchRow[]> {
  return [await warmProgram(), await demoTask()];
}

/** A program with three calls in a session that has a process: the time of the sandbox, because the tool answers at once. */
async function warmProgram(): Promise<BenchRow> {
  await using sandbox = await createSupervisor({ clock: systemClock, warm: 0 });
  const session = await sandbox.openSession({ limits: SESSION_LIMITS, memory: {} }, callOptions());
  let calls = 0;
  const call: SessionCall = async ({ input }) => {
    calls += 1;
    return { time: 1, ok: true, value: input };
  };
  const times: number[] = [];
  for (let run = 0; run < RUNS; run += 1) {
    const begin = performance.now();
    const outcome = await session.run({ code: PROGRAM }, call, callOptions());
    times.push(performance.now() - begin);
    if (!outcome.ok) throw new Error(outcome.message);
  }
  await session.close();
  const [p50, p99] = [quantile(times, 0.5), quantile(times, 0.99)];
  return {
    name: 'warm program with 3 calls',
    figures: { p50: `${p50.toFixed(2)} ms`, p99: `${p99.toFixed(2)} ms` },
    limit: `${CALLS} calls per run; goal p50 ≤ 3 ms`,
    met: calls === CALLS * RUNS,
  };
}

interface Usage {
  turns: number;
  toolCalls: number;
  inputTokens: number;
  outputTokens: number;
}

/** The question of the quick start with tool calls of the model, and as one program. Tokens are estimated at four characters. */
async function demoTask(): Promise<BenchRow> {
  const [tools, code] = await Promise.all([usageOf('manifests/quickstart'), usageOf('manifests/code')]);
  const shown = ({ turns, inputTokens, outputTokens }: Usage): string =>
    `${turns} turns, ${inputTokens + outputTokens} tokens`;
  return {
    name: 'question of the quick start',
    figures: { tools: shown(tools), code: shown(code) },
    limit: 'fewer turns and tokens with code',
    met: code.turns < tools.turns && code.inputTokens + code.outputTokens < tools.inputTokens + tools.outputTokens,
  };
}

async function usageOf(manifests: string): Promise<Usage> {
  const folder = await mkdtemp(join(tmpdir(), 'temper-bench-code-'));
  try {
    const script = join(ROOT, manifests, 'replay.yaml');
    const files = ['-f', join(ROOT, manifests), '--workspace', join(ROOT, 'manifests/quickstart')];
    const args = ['run', ...files, '--model-script', script, '--state', join(folder, 'state'), '-o', 'json'];
    const child = spawn(join(ROOT, 'bin/temper'), [...args, '-m', QUESTION], {
      cwd: folder,
      env: { ...process.env, XDG_CONFIG_HOME: join(folder, 'config') },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const lines = (await text(child.stdout)).trim().split('\n');
    const events = lines.map((line) => JSON.parse(line) as Usage & { type: string });
    const end = events.find(({ type }) => type === 'session-end');
    if (end === undefined) throw new Error(`${manifests}: the session did not end`);
    return end;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
