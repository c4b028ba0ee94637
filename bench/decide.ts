import { explainCall } from '../src/engine/explain/explain-call.ts';
import { createSchemaCompiler } from '../src/tools/json-schema/compiler.ts';
import { createDecider } from '../src/policy/decider.ts';
import type { PolicyRequest, PolicySnapshot } from '../src/policy/types.ts';
import type { BenchRow } from './row.ts';

const WARM_UP = 20_000;
const CALLS = 200_000;

/**
 * Fifty patterns over all lists, or as many times more. Half of them have wildcards, so that no request is decided by a set lookup alone.
 */
function snapshot(times: number): PolicySnapshot {
  const names = (prefix: string, count: number): string[] =>
    Array.from({ length: count * times }, (_, index) =>
      index % 2 === 0 ? `${prefix}_${index}_*` : `${prefix}_${index}`,
    );
  return {
    agent: {
      name: 'analyst',
      namespace: 'team-a',
      spec: {
        trustPolicyRef: { name: 'standard' },
        model: { primary: 'openai/gpt-4o-mini' },
        prompt: { system: 'You are careful.' },
        grants: {
          tools: [...names('granted', 14), 'file_*'],
          network: Array.from({ length: 10 * times }, (_, index) => `*.service-${index}.example.com`),
        },
        denyTools: names('denied', 5),
        arguments: [{ tool: 'file_*', argument: 'path', allow: ['data/**', 'notes/*.md'] }],
      },
    },
    policy: {
      name: 'standard',
      spec: {
        tools: { allow: names('allowed', 5), deny: names('refused', 5) },
        egress: { allow: ['**.example.com', '*.example.org'] },
        models: { allow: ['openai/*', 'anthropic/*', 'replay/**', 'local/*', 'default/default'] },
      },
    },
    level: 'restricted',
    tainted: false,
    workspace: '/workspace',
  };
}

const REQUESTS: readonly (readonly [name: string, request: PolicyRequest])[] = [
  ['call', tool({ path: 'data/2026/orders-q3.csv', limit: 100, columns: ['region', 'revenue'] })],
  ['listing', tool()],
  ['connection', { kind: 'Network', host: 'api.service-9.example.com', port: 443 }],
];

function tool(args?: { path: string; limit?: number; columns?: string[] }): PolicyRequest {
  const base = {
    kind: 'Tool',
    name: 'file_read',
    category: 'file_system',
    action: 'code:read',
    forged: false,
  } as const;
  return args === undefined ? base : { ...base, arguments: args };
}

/** Fifty patterns, and a thousand. */
const SIZES = [
  { times: 1, patterns: 50, limit: 5 },
  { times: 20, patterns: 1_000, limit: 10 },
];
const EXPLANATIONS = 50;
const LIMIT_EXPLAIN_MS = 20;

/** Times each decision separately; the figures include the cost of reading the clock. */
export async function benchDecide(): Promise<BenchRow[]> {
  return [...SIZES.flatMap(decisions), explanation()];
}

function decisions({ times: factor, patterns, limit }: (typeof SIZES)[number]): BenchRow[] {
  const decider = createDecider(snapshot(factor));
  return REQUESTS.map(([name, request]) => {
    if (decider.decide(request).effect !== 'Allow') throw new Error(`bench: ${decider.decide(request).reason}`);
    for (let call = 0; call < WARM_UP; call += 1) decider.decide(request);
    const times = new Float64Array(CALLS);
    for (let call = 0; call < CALLS; call += 1) {
      const started = performance.now();
      decider.decide(request);
      times[call] = (performance.now() - started) * 1_000;
    }
    times.sort();
    const at = (share: number): number => times[Math.floor(CALLS * share)] ?? Number.NaN;
    return {
      name: `decide: ${name}, ${patterns} patterns`,
      figures: { p50: `${at(0.5).toFixed(2)} µs`, p99: `${at(0.99).toFixed(2)} µs` },
      limit: `p50 ≤ ${limit} µs`,
      met: at(0.5) <= limit,
    };
  });
}

/** What `temper policy explain` does in a process that has loaded its modules: it compiles the policy, and explains a call. */
function explanation(): BenchRow {
  const schemas = createSchemaCompiler();
  const times = Array.from({ length: EXPLANATIONS }, () => {
    const before = process.cpuUsage();
    const asked = snapshot(20);
    const explained = explainCall(
      { decider: createDecider(asked), schemas, snapshot: asked },
      tool({ path: 'data/a.csv' }),
    );
    if (explained.effect !== 'Allow') throw new Error(`bench: ${explained.reason}`);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1_000;
  }).toSorted((a, b) => a - b);
  const p50 = times[Math.floor(EXPLANATIONS / 2)] ?? Number.NaN;
  return {
    name: 'policy explain: a call, 1000 patterns, with their compilation',
    figures: { 'processor time p50': `${p50.toFixed(2)} ms` },
    limit: `processor time p50 ≤ ${LIMIT_EXPLAIN_MS} ms`,
    met: p50 <= LIMIT_EXPLAIN_MS,
  };
}
