import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { API_VERSION } from '../../src/api/names.ts';
import { replayProviders } from '../../src/cli/run/providers.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { startReplay } from '../../src/models/replay/server.ts';
import { openModels } from '../../src/models/named-models.ts';
import { openStandalone, type StandaloneOptions } from '../../src/standalone/standalone.ts';
import { type AgentDefinition, scopeOf } from '../../src/standalone/team/member.ts';
import { stateKeys } from '../../src/standalone/trust/state-key.ts';
import { compareWithBareLoop, INPUT, SOURCE } from '../baseline/baseline.ts';
import type { BenchRow } from '../row.ts';
import { callOptions } from '../../test/support/call-options.ts';

const LIMITS = { p50: 2, p99: 4 };

const VERDICT =
  '{"nonce": "{{user | after "-----BEGIN " | before "-----"}}", "lines": [4], "safety": {"passed": true, "concerns": []}, "correctness": {"passed": true, "failedTests": []}, "determinism": {"likely": true, "reasoning": ""}, "bounded": {"likely": true, "reasoning": ""}, "confidence": 0.9, "approved": true, "reasoning": "fine"}';

const AGENT: AgentDefinition['agent'] = {
  apiVersion: API_VERSION,
  kind: 'Agent',
  metadata: { name: 'bench' },
  spec: {
    trustPolicyRef: { name: 'bench' },
    model: { primary: 'default/default' },
    prompt: { system: 'bench' },
    grants: { tools: ['file_read'] },
    forge: { enabled: true, modes: ['Sandbox'] },
    quotas: { toolCallsPerMinute: 1_000_000 },
  },
};
const POLICY: AgentDefinition['policy'] = {
  apiVersion: API_VERSION,
  kind: 'TrustPolicy',
  metadata: { name: 'bench' },
  spec: { level: { initial: 'restricted' }, models: { judge: 'default/judge' } },
};
const ROWS = {
  type: 'array',
  items: {
    type: 'object',
    properties: { region: { type: 'string' }, amount: { type: 'number' }, price: { type: 'number' } },
    required: ['region', 'amount', 'price'],
  },
};
const REQUEST = {
  name: 'totals',
  description: 'Adds amounts by region.',
  inputSchema: { type: 'object', properties: { rows: ROWS }, required: ['rows'] },
  outputSchema: {
    type: 'object',
    properties: { totals: { type: 'object', additionalProperties: { type: 'number' } }, rows: { type: 'integer' } },
    required: ['totals', 'rows'],
  },
  code: SOURCE,
  testCases: [
    { input: { rows: [{ region: 'a', amount: 2, price: 3 }] }, expectedOutput: { totals: { a: 6 }, rows: 1 } },
  ],
};

/** A call of a forged tool by an agent: two policy decisions, quota, both schemas, sandbox and a durable audit record. */
export async function benchFullCall(): Promise<BenchRow[]> {
  const folder = await mkdtemp(join(tmpdir(), 'temper-bench-'));
  await using replay = await startReplay({ script: { rules: [{ answer: { text: VERDICT } }] }, clock: systemClock });
  const models = openModels(replayProviders(replay.url), { clock: systemClock, environment: {}, random: Math.random });
  const options: StandaloneOptions = {
    state: join(folder, 'state'),
    keys: stateKeys(join(folder, 'config')),
    workspace: tmpdir(),
    protectedPaths: [],
    agents: [{ agent: AGENT, policy: POLICY }],
    models,
    events: () => undefined,
    hasApprover: false,
    redact: (text) => text,
  };
  const row = await benchCalls(options);
  await rm(folder, { recursive: true });
  return [row];
}

async function benchCalls(options: StandaloneOptions): Promise<BenchRow> {
  await using standalone = await openStandalone(options);
  const { engine } = await standalone.open(scopeOf({ agent: AGENT }));
  const call = async (tool: string, input: Parameters<typeof engine.invoke>[1]): Promise<void> => {
    const result = await engine.invoke(tool, input, 'bench', callOptions());
    if (!result.ok) throw new Error(`${result.error.code}: ${result.error.message}`);
  };
  await call('forge_tool', REQUEST);
  return await compareWithBareLoop('warm tool call with all checks and a durable record', LIMITS, () =>
    call('totals', INPUT),
  );
}
