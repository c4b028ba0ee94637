import { createDecider } from '../src/policy/decider.ts';
import type { PolicyRequest, PolicySnapshot } from '../src/policy/types.ts';
import type { BenchRow } from './row.ts';

const WARM_UP = 20_000;
const CALLS = 200_000;
const LIMIT_MICROSECONDS = 5;

/** Fifty patterns over all lists. Half of them have wildcards, so that no request is decided by a set lookup alone. */
function snapshot(): PolicySnapshot {
  const names = (prefix: string, count: number): string[] =>
    Array.from({ length: count }, (_, index) => (index % 2 === 0 ? `${prefix}_${index}_*` : `${prefix}_${index}`));
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
          network: Array.from({ length: 10 }, (_, index) => `*.service-${index}.example.com`),
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

function tool(args?: { path: string; limit: number; columns: string[] }): PolicyRequest {
  const base = {
    kind: 'Tool',
    name: 'file_read',
    category: 'file_system',
    action: 'code:read',
    forged: false,
  } as const;
  return args === undefined ? base : { ...base, arguments: args };
}

/** Times each decision separately; the figures include the cost of reading the clock. */
export async function benchDecide(): Promise<BenchRow[]> {
  const decider = createDecider(snapshot());
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
      name: `decide: ${name}, 50 patterns`,
      figures: { p50: `${at(0.5).toFixed(2)} µs`, p99: `${at(0.99).toFixed(2)} µs` },
      limit: `p50 ≤ ${LIMIT_MICROSECONDS} µs`,
      met: at(0.5) <= LIMIT_MICROSECONDS,
    };
  });
}
