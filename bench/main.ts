import type { BenchRow } from './row.ts';

/**
 * Runs the benchmarks and prints their figures. Each figure is measured together with its baseline in one run, because machines differ. The
 * exit code is 1 when a limit is exceeded. Arguments select benchmarks by name.
 */
const BENCHES: Record<string, () => Promise<BenchRow[]>> = {
  sandbox: async () => (await import('./tools/sandbox.ts')).benchSandbox(),
  'full-call': async () => (await import('./tools/full-call.ts')).benchFullCall(),
  'tool-check': async () => (await import('./tools/tool-check.ts')).benchToolCheck(),
  'mcp-call': async () => (await import('./tools/mcp-call.ts')).benchMcpCall(),
  'code-mode': async () => (await import('./tools/code-mode.ts')).benchCodeMode(),
  decide: async () => (await import('./decide.ts')).benchDecide(),
  children: async () => (await import('./agents/children.ts')).benchChildren(),
  spawns: async () => (await import('./agents/spawns.ts')).benchSpawns(),
  'scheduled-agents': async () => (await import('./agents/scheduled-agents.ts')).benchScheduledAgents(),
  egress: async () => (await import('./egress.ts')).benchEgress(),
  discovery: async () => (await import('./discovery/by-words.ts')).benchDiscovery(),
  'discovery-meaning': async () => (await import('./discovery/by-meaning.ts')).benchDiscoveryByMeaning(),
  disclosure: async () => (await import('./discovery/disclosure.ts')).benchDisclosure(),
  dispatch: async () => (await import('./agents/dispatch.ts')).benchDispatch(),
  turn: async () => (await import('./agents/turn.ts')).benchTurn(),
  'session-repair': async () => (await import('./agents/session-repair.ts')).benchSessionRepair(),
  cli: async () => (await import('./cli.ts')).benchCli(),
  'library-hygiene': async () => (await import('./tools/library-hygiene.ts')).benchLibraryHygiene(),
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
