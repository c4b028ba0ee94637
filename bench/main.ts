import type { BenchRow } from './row.ts';

/**
 * Runs the benchmarks and prints their figures. Each figure is measured together with its baseline in one run, because machines differ. The
 * exit code is 1 when a limit is exceeded. Arguments select benchmarks by name.
 */
const BENCHES: Record<string, () => Promise<BenchRow[]>> = {
  sandbox: async () => (await import('./sandbox.ts')).benchSandbox(),
  'full-call': async () => (await import('./full-call.ts')).benchFullCall(),
  'tool-check': async () => (await import('./tool-check.ts')).benchToolCheck(),
  'code-mode': async () => (await import('./code-mode.ts')).benchCodeMode(),
  decide: async () => (await import('./decide.ts')).benchDecide(),
  children: async () => (await import('./children.ts')).benchChildren(),
  spawns: async () => (await import('./spawns.ts')).benchSpawns(),
  'scheduled-agents': async () => (await import('./scheduled-agents.ts')).benchScheduledAgents(),
  egress: async () => (await import('./egress.ts')).benchEgress(),
  discovery: async () => (await import('./discovery.ts')).benchDiscovery(),
  disclosure: async () => (await import('./disclosure.ts')).benchDisclosure(),
  dispatch: async () => (await import('./dispatch.ts')).benchDispatch(),
  turn: async () => (await import('./turn.ts')).benchTurn(),
  'session-repair': async () => (await import('./session-repair.ts')).benchSessionRepair(),
  cli: async () => (await import('./cli.ts')).benchCli(),
  'library-hygiene': async () => (await import('./library-hygiene.ts')).benchLibraryHygiene(),
  'first-token': async () => (await import('./first-token.ts')).benchFirstToken(),
};

const chosen = process.argv.slice(2);
const names = chosen.length > 0 ? chosen : Object.keys(BENCHES);
let allMet = true;
for (const name of names) {
  const bench = BENCHES[name];
  if (bench === undefined)
    throw new Error(`unknown benchmark ${name}; known benchmarks: ${Object.keys(BENCHES).join(', ')}`);
  for (const { name: what, figures, limit, met } of await bench()) {
    allMet &&= met;
    const shown = Object.entries(figures).map(([label, value]) => `${label} ${value}`);
    process.stdout.write(`${met ? '✓' : '✗'} ${what}\n    ${shown.join(' · ')}\n    limit: ${limit}\n`);
  }
}
process.exitCode = allMet ? 0 : 1;
