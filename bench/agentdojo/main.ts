import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { loadManifests } from '../../src/api/manifests.ts';
import { PATTERN_RULES } from '../../src/policy/patterns/pattern-rules.ts';
import { replayProviders } from '../../src/cli/run/providers.ts';
import { selectServed } from '../../src/cli/run/select-agent.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { openServer } from '../../src/mcp/client/connection/open-server.ts';
import { serverToolDescriptor } from '../../src/mcp/client/tools/server-tools.ts';
import { openModels } from '../../src/models/named-models.ts';
import type { ReplayScript } from '../../src/models/replay/script/script.ts';
import { startReplay } from '../../src/models/replay/server.ts';
import { openStandalone } from '../../src/standalone/standalone.ts';
import type { AgentDefinition } from '../../src/standalone/team/member.ts';
import type { AcceptedServer } from '../../src/standalone/team/mcp-tools.ts';
import { stateKeys } from '../../src/standalone/trust/state-key.ts';
import type { AgentEvent } from '../../src/tools/events.ts';
import { callOptions } from '../../test/support/call-options.ts';
import { type Suite, SUITES, Suites } from './environment.ts';
import { reportOf } from './report.ts';
import { type PairResult, runPair } from './run-pair.ts';
import type { Attack } from './script.ts';

/** The servers need no token and are no commands. */
const NO_SECRETS = { token: () => undefined, launcher: undefined };
const ATTACKS = ['ground-truth', 'knows-policy'] as const;

/**
 * `--python FILE [--suite NAME…] [--attack NAME…] [--every N] [--unguarded] [--results FILE]`: runs the pairs of AgentDojo and prints the
 * figures. `--unguarded`: under a policy that permits every tool, which shows what the model of the run does.
 */
async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      python: { type: 'string', default: 'python3' },
      suite: { type: 'string', multiple: true },
      attack: { type: 'string', multiple: true },
      every: { type: 'string', default: '1' },
      unguarded: { type: 'boolean', default: false },
      results: { type: 'string' },
    },
  });
  const chosen = namedOf('--suite', SUITES, values.suite);
  const attacks = namedOf('--attack', ATTACKS, values.attack);
  const every = Number(values.every);
  if (!Number.isInteger(every) || every < 1) throw new Error('--every takes a whole number from 1 on');
  await using suites = await Suites.start(values.python);
  let allMet = true;
  for (const attack of attacks) {
    const run = { chosen, attack, every, unguarded: values.unguarded };
    const results = await runAll(suites, run);
    const { text, met } = reportOf(values.unguarded ? `${attack}, unguarded` : attack, results);
    process.stdout.write(text);
    allMet &&= met;
    if (values.results !== undefined)
      await writeFile(`${values.results}-${attack}.json`, JSON.stringify(results, null, 1));
  }
  return allMet ? 0 : 1;
}

/** Those that are named; all without a name. */
function namedOf<T extends string>(option: string, known: readonly T[], named: readonly string[] = known): T[] {
  const unknown = named.find((name) => !known.some((one) => one === name));
  if (unknown !== undefined) throw new Error(`${option} ${unknown} is unknown; known: ${known.join(', ')}`);
  return known.filter((one) => named.includes(one));
}

interface Run {
  chosen: readonly Suite[];
  attack: Attack;
  every: number;
  unguarded: boolean;
}

async function runAll(suites: Suites, { chosen, attack, every, unguarded }: Run): Promise<PairResult[]> {
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'temper-agentdojo-'));
  stack.defer(() => rm(folder, { recursive: true }));
  const manifests = await loadManifests([join(import.meta.dirname, 'agents.yaml')], { patterns: PATTERN_RULES });
  const script: ReplayScript = { rules: [{ answer: { text: 'Done.' } }] };
  const replay = stack.use(await startReplay({ script, clock: systemClock }));
  const observers = new Map<string, (event: AgentEvent) => void>();
  const standalone = stack.use(
    await openStandalone({
      state: join(folder, 'state'),
      keys: stateKeys(join(folder, 'config')),
      workspace: folder,
      protectedPaths: [],
      agents: selectServed(manifests, {}).agents.map((agent) => (unguarded ? withoutRules(agent) : agent)),
      models: openModels(replayProviders(replay.url), { clock: systemClock, environment: {}, random: Math.random }),
      mcp: { servers: await Promise.all(chosen.map((suite) => acceptedServer(suites, suite))), ...NO_SECRETS },
      events: (event, { session }) => observers.get(session ?? '')?.(event),
      hasApprover: true,
      redact: (text) => text,
    }),
  );
  const observe = (session: string, receive: ((event: AgentEvent) => void) | undefined): void => {
    if (receive === undefined) observers.delete(session);
    else observers.set(session, receive);
  };
  const results: PairResult[] = [];
  const pairs = (await suites.pairs(chosen)).filter((_, index) => index % every === 0);
  for (const [number, pair] of pairs.entries()) {
    results.push(await runPair(pair, number, attack, { suites, standalone, script, observe }));
  }
  return results;
}

/** The agent without what its policy forbids and asks for. */
function withoutRules({ agent, policy }: AgentDefinition): AgentDefinition {
  const { arguments: _pinned, ...spec } = agent.spec;
  const { rules: _rules, tainted: _tainted, ...rest } = policy.spec;
  return {
    agent: { ...agent, spec },
    policy: { ...policy, spec: { ...rest, privateData: { sources: [] } } },
  };
}

/** The user of the agents accepts the tools as the server lists them. */
async function acceptedServer(suites: Suites, suite: Suite): Promise<AcceptedServer> {
  const server = { name: suite, category: 'other' as const, url: `${suites.url}/mcp/${suite}` };
  await using connection = await openServer(server, { clock: systemClock, ...NO_SECRETS }, callOptions());
  const { tools, refused } = await connection.tools(callOptions());
  if (refused.length > 0) throw new Error(`${suite}: ${JSON.stringify(refused)}`);
  return { server, tools, offered: tools.map((tool) => ({ tool, descriptor: serverToolDescriptor(tool, server) })) };
}

process.exitCode = await main();
