import type { ToolArtifact } from '../api/v1alpha1/emergenttool.ts';
import type { SignedHead } from '../audit/stream-chain.ts';
import { digestOf } from '../lib/canonical.ts';
import type { JsonObject } from '../lib/json.ts';
import type { ToolReview } from './tool-review.ts';

/** Builders for the tests of review pages. */

const SOURCE = `// Sums amounts by region.
function execute(input) {
  const totals = {};
  for (const row of input.rows) {
    if (!/^[a-z]+$/i.test(row.region)) throw new Error(\`region \${row.region}\`);
    totals[row.region] = (totals[row.region] ?? 0) + row.amount;
  }
  return { totals };
}
`;

/** What a judge reads of the source. */
const JUDGED =
  '{\n"code":[\nfunction execute(a) {\n  const b = {};\n  for (const c of a.rows) {\n  }\n  return { totals: b };\n}\n]\n}';

const USED_BY = [
  { name: 'analyst', uses: 9, succeeded: 9, sessions: 4, rootMessages: 5 },
  { name: 'reporter', uses: 1, succeeded: 0, sessions: 0, rootMessages: 1 },
];
const VERIFICATION = {
  tests: { passed: 2, failed: 0, problems: [] },
  reruns: { succeeded: 6, total: 6, distinctInputs: 6, rootMessages: 5, observedAnswers: 2, reportedAnswers: 1 },
  generated: [{ name: 'order of rows', passed: true, detail: '20 permutations' }],
} satisfies ToolReview['verification'];
const AUDIT = {
  time: '2026-03-01T09:15:00.000Z',
  agent: 'analyst',
  model: 'openai/gpt-4o',
  evidence: 'Compared',
  tasks: [
    {
      task: 'Sum the orders of May by region.',
      withTool: { outcome: 'complete', uses: 1, toolCalls: 2, turns: 3, tokens: 4_100 },
      withoutTool: { outcome: 'truncated', uses: 0, toolCalls: 9, turns: 12, tokens: 38_000 },
    },
  ],
} satisfies ToolReview['audit'];
const PROVENANCE = [
  {
    time: '2026-03-01T09:00:00.000Z',
    action: 'tool.accepted',
    actor: 'agent/analyst',
    record: `sha256:${'1'.repeat(64)}`,
  },
  {
    time: '2026-03-01T09:20:00.000Z',
    action: 'tool.promoted',
    actor: 'system',
    record: `sha256:${'2'.repeat(64)}`,
  },
];
const QUESTION = {
  topic: 'boundary values',
  reason: 'boundary values: 1 of 20 inputs differ',
  cases: [{ input: '{"rows":[]}', expected: '{"totals":{}}', got: 'error' }],
};

export function aReviewedArtifact(changes: Partial<ToolArtifact> = {}): ToolArtifact {
  return {
    name: 'revenue_by_region',
    description: 'Sums the amounts of rows by region.',
    inputSchema: '{"properties":{"rows":{"type":"array"}},"required":["rows"],"type":"object"}',
    outputSchema: '{"properties":{"totals":{"type":"object"}},"required":["totals"],"type":"object"}',
    implementation: { mode: 'Sandbox', source: SOURCE },
    tests: [
      {
        input: '{"rows":[{"amount":2,"region":"West"},{"amount":3,"region":"West"}]}',
        expectedOutput: '{"totals":{"West":5}}',
      },
      { input: '{"rows":[]}' },
    ],
    requires: { apis: [], domains: [], paths: [] },
    limits: { duration: '1s', memory: '64Mi' },
    ...changes,
  };
}

export const AUDIT_HEAD = {
  sequence: 4711,
  records: 4711,
  digest: `sha256:${'3'.repeat(64)}`,
  time: '2026-03-01T09:21:00.000Z',
  recordedAt: '2026-03-01T09:20:13.000Z',
  key: '0123456789abcdef',
  signature: 'c2lnbmF0dXJl',
} satisfies SignedHead;

/** Of the time of the request, before the page was written. */
const REQUEST_HEAD = { ...AUDIT_HEAD, sequence: 4702, records: 4702, signature: 'b2xkZXI=' } satisfies SignedHead;

/** A tool that replaces an earlier version, with every kind of evidence. */
export function aReview(changes: Partial<ToolReview> = {}): ToolReview {
  const artifact = aReviewedArtifact();
  const earlier = aReviewedArtifact({
    implementation: { mode: 'Sandbox', source: SOURCE.replace('(totals[row.region] ?? 0) + ', '') },
    requires: { apis: ['fs.readFile'], domains: [], paths: ['data/*'] },
  });
  return {
    namespace: 'team-a',
    object: 'revenue-by-region-mzxw6ytboi5dcmrvgq3tqojq7e',
    artifact,
    digest: digestOf(artifact as unknown as JsonObject),
    contributors: ['agent/analyst'],
    promotion: {
      from: 'Agent',
      nonce: 'k4q7pWm2Zc8vN1xRt6Yb',
      approvedBy: 'system:serviceaccount:flux-system:kustomize-controller',
      request: 'revenue-by-region-k4q7p',
      summary: 'Promote revenue_by_region to every agent of team-a.',
      risk: 'medium',
    },
    replaces: { artifact: earlier, digest: digestOf(earlier as unknown as JsonObject) },
    verification: VERIFICATION,
    uses: {
      total: 9,
      succeeded: 9,
      reported: 3,
      distinctInputs: 6,
      rootMessages: 5,
      agents: ['analyst'],
      usedBy: USED_BY,
    },
    audit: AUDIT,
    verdicts: [
      { model: 'openai/gpt-4o-mini', approved: true, confidence: 0.93, reasoning: 'Pure and bounded.' },
      {
        question: 'safety',
        model: 'anthropic/claude-sonnet-4-6',
        approved: true,
        confidence: 0.91,
        reasoning: 'Line 5 visits\nevery row.',
        citedLines: [5],
      },
    ],
    judged: JUDGED,
    questions: [QUESTION],
    authorModel: 'openai/gpt-4o',
    provenance: PROVENANCE,
    auditHead: AUDIT_HEAD,
    requestHead: REQUEST_HEAD,
    ...changes,
  };
}
