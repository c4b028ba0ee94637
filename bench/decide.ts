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

/** Times the patterns of the policy, and the goal for each size in microseconds. */
const SIZES = [
  { times: 1, patterns: 50, goal: 5 },
  { times: 20, patterns: 1_000, goal: 10 },
];
/** Of a decision with twenty times the patterns, relative to one with fifty. */
const LIMIT_GROWTH = 4;
const EXPLANATIONS = 50;
/** Of an explanation with the compilation of its policy, relative to the compilation. */
const LIMIT_EXPLANATION = 4;

/** Times each decision separately; the figures include the cost of reading the clock. */
export async function benchDecide(): Promise<BenchRow[]> {
  return [...REQUESTS.map(decisions), explanation()];
}

function decisions([name, request]: (typeof REQUESTS)[number]): BenchRow {
  const measured = SIZES.map(({ times, patterns, goal }) => ({ ...quantilesOf(times, request), patterns, goal }));
  const [few, many] = measured;
  const growth = (many?.p50 ?? Number.NaN) / (few?.p50 ?? Number.NaN);
  const figures = measured.flatMap(({ patterns, p50, p99, goal }) => [
    [`${patterns} patterns p50`, `${p50.toFixed(2)} µs (goal ${goal})`],
    [`${patterns} patterns p99`, `${p99.toFixed(2)} µs`],
  ]);
  return {
    name: `decide: ${name}`,
    figures: { ...Object.fromEntries(figures), growth: growth.toFixed(2) },
    limit: `growth of p50 ≤ ${LIMIT_GROWTH} with twenty times the patterns`,
    met: growth <= LIMIT_GROWTH,
  };
}

/** In microseconds. */
function quantilesOf(factor: number, request: PolicyRequest): { p50: number; p99: number } {
  const decider = createDecider(snapshot(factor));
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
  return { p50: at(0.5), p99: at(0.99) };
}

/** What `temper policy explain` does in a process that has loaded its modules: it compiles the policy, and explains a call. */
function explanation(): BenchRow {
  const schemas = createSchemaCompiler();
  const asked = snapshot(20);
  const compiled = processorTime(() => createDecider(asked));
  const explained = processorTime(() => {
    const question = { decider: createDecider(asked), schemas, snapshot: asked };
    const { effect, reason } = explainCall(question, tool({ path: 'data/a.csv' }));
    if (effect !== 'Allow') throw new Error(`bench: ${reason}`);
  });
  const ratio = explained / compiled;
  return {
    name: 'policy explain: a call, 1000 patterns, with their compilation',
    figures: {
      'processor time p50': `${explained.toFixed(2)} ms (goal 20)`,
      'the compilation alone': `${compiled.toFixed(2)} ms`,
      ratio: ratio.toFixed(2),
    },
    limit: `ratio ≤ ${LIMIT_EXPLANATION}`,
    met: ratio <= LIMIT_EXPLANATION,
  };
}

/** The median of 50 runs, in milliseconds. */
function processorTime(run: () => void): number {
  const times = Array.from({ length: EXPLANATIONS }, () => {
    const before = process.cpuUsage();
    run();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1_000;
  }).toSorted((a, b) => a - b);
  return times[Math.floor(EXPLANATIONS / 2)] ?? Number.NaN;
}
