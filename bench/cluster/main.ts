import { writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import type { OperatorProcess } from './operator-process.ts';
import { format, type Row } from './row.ts';

/**
 * Prints what the operator costs on a real control plane with fake nodes. Exit code 1 when a requirement is missed; goals are only
 * reported, since they depend on the machine. Arguments choose figures by name.
 */
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    /** How long nothing changes. */
    seconds: { type: 'string', default: '600' },
    agents: { type: 'string', default: '1000' },
    /** Where to write CPU profiles of the operator. */
    profile: { type: 'string' },
  },
});
const agents = Number(values.agents);

const FIGURES: Record<string, () => Promise<Row[]>> = {
  life: async () => (await import('./life.ts')).benchLife(agents, profiling('life')),
  standing: async () => {
    const { benchStanding } = await import('./standing.ts');
    return benchStanding({ agents, quietSeconds: Number(values.seconds), profile: profiling('standing') });
  },
  pods: async () => (await import('./pods.ts')).benchPods(),
  message: async () => (await import('./message.ts')).benchMessage(),
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
  if (figure === undefined) throw new Error(`no figure is named ${name}; known: ${Object.keys(FIGURES).join(', ')}`);
  const found = await figure();
  process.stdout.write(format(found));
  rows.push(...found);
}
process.exitCode = rows.some(({ kind, met }) => kind === 'requirement' && met === false) ? 1 : 0;
