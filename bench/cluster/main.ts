import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import type { OperatorProcess } from './support/operator-process.ts';
import { format, type Row } from './row.ts';

/**
 * Measures the cost of the operator on a real control plane with fake nodes. The exit code is 1 when a requirement is missed. Goals are only
 * reported, because they depend on the machine. Arguments select figures by name.
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    /** The duration of the idle measurement and of `soak-faults`. */
    seconds: { type: 'string', default: '600' },
    agents: { type: 'string', default: '1000' },
    /** Over which `agents-at-scale` and `burst` distribute the agents. */
    namespaces: { type: 'string', default: '100' },
    gateways: { type: 'string', default: '4' },
    /** Messages per second. */
    rate: { type: 'string', default: '50' },
    inboxes: { type: 'string', default: '100000' },
    /** Task records of all agents together. */
    records: { type: 'string', default: '100000' },
    /** Of each step of `tool-life`. */
    samples: { type: 'string', default: '30' },
    /** The pause between two faults of `soak-faults`, in seconds. */
    'fault-seconds': { type: 'string', default: '30' },
    /** Only faults of `soak-faults` that kill no process. */
    'without-kills': { type: 'boolean' },
    /** The folder for CPU profiles of the operator. */
    profile: { type: 'string' },
  },
});
const agents = Number(values.agents);
const scale = {
  agents,
  namespaces: Number(values.namespaces),
  gateways: Number(values.gateways),
  rate: Number(values.rate),
  quietSeconds: Number(values.seconds),
};

/** A figure that takes long has its rows when they are measured. */
const FIGURES: Record<string, () => Promise<Row[]> | AsyncIterable<Row[]>> = {
  lifecycle: async () => (await import('./lifecycle.ts')).benchLifecycle(agents, profiling('lifecycle')),
  idle: async () => {
    const { benchIdle } = await import('./idle.ts');
    return benchIdle({ agents, quietSeconds: Number(values.seconds), profile: profiling('idle') });
  },
  pods: async () => (await import('./pods.ts')).benchPods(agents),
  message: async () => (await import('./message.ts')).benchMessage(),
  neighbours: async () => (await import('./neighbours/neighbours.ts')).benchNeighbours(),
  async *'agents-at-scale'() {
    const { benchAgentsAtScale } = await import('./agents-at-scale.ts');
    yield* benchAgentsAtScale({ ...scale, profile: profiling('agents-at-scale') });
  },
  'soak-faults': async () => {
    const { benchSoakFaults } = await import('./soak-faults.ts');
    const faults = { faultSeconds: Number(values['fault-seconds']), kills: values['without-kills'] !== true };
    return benchSoakFaults({ ...scale, seconds: scale.quietSeconds, ...faults });
  },
  burst: async () => (await import('./burst.ts')).benchBurst(scale),
  'tool-life': async () => (await import('./tools/tool-life.ts')).benchToolLife(Number(values.samples)),
  schedules: async () => (await import('./schedules.ts')).benchSchedules(agents, profiling('schedules')),
  evidence: async () => (await import('./tools/evidence.ts')).benchEvidence(agents, Number(values.records)),
  inboxes: async () => (await import('./inboxes.ts')).benchInboxes(Number(values.inboxes)),
  'replicated-inboxes': async () => (await import('./inboxes.ts')).benchReplicatedInboxes(Number(values.inboxes)),
};

/** Only when named: they need tens of minutes at their sizes, or an hour. */
const LONG = new Set(['agents-at-scale', 'burst', 'replicated-inboxes', 'soak-faults']);

/** `part` distinguishes several profiles of one figure. */
function profiling(name: string): (operator: OperatorProcess, part?: string) => Promise<AsyncDisposable> {
  const folder = values.profile;
  return async (operator, part) => {
    if (folder === undefined) return { [Symbol.asyncDispose]: async () => {} };
    const inspector = await operator.inspector();
    await inspector.startProfile();
    return {
      async [Symbol.asyncDispose]() {
        const profile = await inspector.endProfile();
        await writeFile(
          `${folder}/${[name, ...(part === undefined ? [] : [part])].join('-')}.cpuprofile`,
          JSON.stringify(profile),
        );
        await inspector[Symbol.asyncDispose]();
      },
    };
  };
}

// Each server that a figure starts has a listener for the end of the benchmark.
process.setMaxListeners(100);
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
const names = positionals.length > 0 ? positionals : Object.keys(FIGURES).filter((name) => !LONG.has(name));
const rows: Row[] = [];
for (const name of names) {
  const figure = FIGURES[name];
  if (figure === undefined)
    throw new Error(`unknown figure ${name}; known figures: ${Object.keys(FIGURES).join(', ')}`);
  const result = figure();
  for await (const found of result instanceof Promise ? [result] : result) {
    process.stdout.write(format(found));
    rows.push(...found);
  }
}
process.exitCode = rows.some(({ kind, met }) => kind === 'requirement' && met === false) ? 1 : 0;
