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
    /** The duration of the idle measurement. */
    seconds: { type: 'string', default: '600' },
    agents: { type: 'string', default: '1000' },
    /** The folder for CPU profiles of the operator. */
    profile: { type: 'string' },
  },
});
const agents = Number(values.agents);

const FIGURES: Record<string, () => Promise<Row[]>> = {
  lifecycle: async () => (await import('./lifecycle.ts')).benchLifecycle(agents, profiling('lifecycle')),
  idle: async () => {
    const { benchIdle } = await import('./idle.ts');
    return benchIdle({ agents, quietSeconds: Number(values.seconds), profile: profiling('idle') });
  },
  pods: async () => (await import('./pods.ts')).benchPods(agents),
  message: async () => (await import('./message.ts')).benchMessage(),
  inboxes: async () => (await import('./inboxes.ts')).benchInboxes(),
};

function profiling(name: string): (operator: OperatorProcess) => Promise<AsyncDisposable> {
  const folder = values.profile;
  return async (operator) => {
    if (folder === undefined) return { [Symbol.asyncDispose]: async () => {} };
    const inspector = await operator.inspector();
    await inspector.startProfile();
    return {
      async [Symbol.asyncDispose]() {
        const profile = await inspector.endProfile();
        await writeFile(`${folder}/${name}.cpuprofile`, JSON.stringify(profile));
        await inspector[Symbol.asyncDispose]();
      },
    };
  };
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
const names = positionals.length > 0 ? positionals : Object.keys(FIGURES);
const rows: Row[] = [];
for (const name of names) {
  const figure = FIGURES[name];
  if (figure === undefined)
    throw new Error(`unknown figure ${name}; known figures: ${Object.keys(FIGURES).join(', ')}`);
  const found = await figure();
  process.stdout.write(format(found));
  rows.push(...found);
}
process.exitCode = rows.some(({ kind, met }) => kind === 'requirement' && met === false) ? 1 : 0;
