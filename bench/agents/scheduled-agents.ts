import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { API_VERSION } from '../../src/api/names.ts';
import { poll, StopPolling } from '../../test/support/poll.ts';
import { startTemper } from '../../test/system/command.ts';
import type { BenchRow } from '../row.ts';

const AGENTS = 1_000;
const GOAL_MEBIBYTES = 200;
const GOAL_PERCENT = 1;
const MAX_RATIO = 2;
/** Longer than the interval after which a process computes all due times again. */
const IDLE_SECONDS = 65;
const START_MS = 300_000;
const QUIET_SECONDS = 3;
/** Of the counters in /proc, per second. */
const TICKS = 100;

interface Served {
  readonly mebibytes: number;
  readonly startSeconds: number;
  readonly cpuPercent: number;
}

/** Resident memory and processor time of `temper run --serve` with so many agents whose schedules are not due. */
export async function benchScheduledAgents(): Promise<BenchRow[]> {
  if (process.platform !== 'linux') return [];
  const [one, many] = [await serve(1, 1), await serve(AGENTS, IDLE_SECONDS)];
  const ratio = many.mebibytes / one.mebibytes;
  return [
    {
      name: `${AGENTS} agents with schedules in one process`,
      figures: {
        'resident memory': `${many.mebibytes.toFixed(0)} MiB (goal ${GOAL_MEBIBYTES} MiB)`,
        'with one agent': `${one.mebibytes.toFixed(0)} MiB`,
        ratio: ratio.toFixed(2),
        idle: `${many.cpuPercent.toFixed(2)} % of a core in ${IDLE_SECONDS} s (goal ${GOAL_PERCENT} %)`,
        start: `${many.startSeconds.toFixed(1)} s`,
        'load average': loadavg()[0]?.toFixed(1) ?? '',
      },
      limit: `at most ${MAX_RATIO} times the memory with one agent`,
      met: ratio <= MAX_RATIO,
    },
  ];
}

async function serve(agents: number, idleSeconds: number): Promise<Served> {
  const folder = await mkdtemp(join(tmpdir(), 'temper-bench-scheduled-'));
  try {
    const { policy, all } = manifests(agents);
    await writeFile(join(folder, 'policy.yaml'), policy);
    await writeFile(join(folder, 'agents.yaml'), all);
    await writeFile(join(folder, 'script.yaml'), 'rules: [{answer: {text: done}}]\n');
    const started = performance.now();
    const { child, ended } = startTemper(
      ['run', '--serve', '-f', 'policy.yaml', '-f', 'agents.yaml', '--model-script', 'script.yaml'],
      {
        cwd: folder,
      },
    );
    try {
      let errors = '';
      child.stderr?.on('data', (text: string) => (errors += text));
      await poll(
        'the start of the schedules',
        () => {
          if (child.exitCode !== null) throw new StopPolling(errors);
          return errors.includes('note: serving');
        },
        { timeoutMs: START_MS },
      );
      const startSeconds = (performance.now() - started) / 1_000;
      // The first round stores when each schedule is due.
      await poll('the end of the first round', () => isQuiet(child.pid), { timeoutMs: START_MS });
      const before = await ticksOf(child.pid);
      await sleep(idleSeconds * 1_000);
      const cpuPercent = (((await ticksOf(child.pid)) - before) / TICKS / idleSeconds) * 100;
      return { mebibytes: await residentOf(child.pid), startSeconds, cpuPercent };
    } finally {
      child.kill('SIGKILL');
      await ended;
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The runs are due at the start of a year. A file has at most 1,000 documents. */
function manifests(agents: number): { policy: string; all: string } {
  const object = (kind: string, name: string, spec: object) =>
    JSON.stringify({ apiVersion: API_VERSION, kind, metadata: { name }, spec });
  const spec = {
    trustPolicyRef: { name: 'p' },
    model: { primary: 'default/default' },
    prompt: { system: 'You report.' },
    schedule: { mode: 'Periodic', cron: '0 0 1 1 *', message: 'report' },
  };
  const all = Array.from({ length: agents }, (_, index) => object('Agent', `agent-${index}`, spec));
  return { policy: object('TrustPolicy', 'p', {}), all: all.join('\n---\n') };
}

async function isQuiet(pid: number | undefined): Promise<boolean> {
  const before = await ticksOf(pid);
  await sleep(QUIET_SECONDS * 1_000);
  return (await ticksOf(pid)) === before;
}

async function residentOf(pid: number | undefined): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1_024;
}

/** User and system time. */
async function ticksOf(pid: number | undefined): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return Number(fields[11]) + Number(fields[12]);
}
