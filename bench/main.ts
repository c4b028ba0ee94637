import type { BenchRow } from './row.ts';

/**
 * Prints the table of speeds. Each figure is measured beside what it is compared with, in one run, since machines differ and
 * change. Exit code 1 when a limit is not kept. Arguments choose the benches by name.
 */
const BENCHES: Record<string, () => Promise<BenchRow[]>> = {
  sandbox: async () => (await import('./sandbox.ts')).benchSandbox(),
  'full-call': async () => (await import('./full-call.ts')).benchFullCall(),
  'tool-check': async () => (await import('./tool-check.ts')).benchToolCheck(),
  decide: async () => (await import('./decide.ts')).benchDecide(),
  discovery: async () => (await import('./discovery.ts')).benchDiscovery(),
  turn: async () => (await import('./turn.ts')).benchTurn(),
  cli: async () => (await import('./cli.ts')).benchCli(),
};

const chosen = process.argv.slice(2);
const names = chosen.length > 0 ? chosen : Object.keys(BENCHES);
let allMet = true;
for (const name of names) {
  const bench = BENCHES[name];
  if (bench === undefined) throw new Error(`no bench is named ${name}; known: ${Object.keys(BENCHES).join(', ')}`);
  for (const { name: what, figures, limit, met } of await bench()) {
    allMet &&= met;
    const shown = Object.entries(figures).map(([label, value]) => `${label} ${value}`);
    process.stdout.write(`${met ? '✓' : '✗'} ${what}\n    ${shown.join(' · ')}\n    limit: ${limit}\n`);
  }
}
process.exitCode = allMet ? 0 : 1;
