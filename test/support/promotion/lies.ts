import { digestOf } from '../../../src/lib/canonical.ts';
import type { Json } from '../../../src/lib/json.ts';
import type { EvidencedCall } from '../../../src/tempering/types.ts';

/** One call that the gateway carried, as the pod records it. */
export interface Carried {
  call: EvidencedCall;
  signature: string;
}

/** A report of one use for one root message. */
export type Report = {
  deliveryToken?: string | undefined;
  answerSignatures?: string[];
  uses: (Record<string, unknown> & { recording: { ok: true; recording: { calls: EvidencedCall[] } } })[];
  [member: string]: unknown;
};

/** The honest report of a use of a tool whose steps made these calls, for the message of the delivery. */
export function honestReport(
  tool: { agent: string; namespace: string; session: string; digest: string },
  delivery: { deliveryToken: string; rootMessage: string },
  use: { input: Json; output: Json; carried: readonly Carried[] },
): Report {
  const { deliveryToken, rootMessage } = delivery;
  const { input, output, carried } = use;
  const reported = {
    ...tool,
    evidence: 'reported',
    rootMessage,
    input,
    output: digestOf(output),
    recording: { ok: true as const, recording: { calls: carried.map(({ call }) => call) } },
    succeeded: true,
    milliseconds: 1,
    time: '2026-01-01T00:00:00Z',
  };
  return { deliveryToken, answerSignatures: carried.map(({ signature }) => signature), uses: [reported] };
}

/** The report with members of its uses replaced. */
export const withUse = (report: Report, change: Record<string, unknown>): Report => ({
  ...report,
  uses: report.uses.map((one) => ({ ...one, ...change })),
});
const calls = (report: Report, change: (calls: EvidencedCall[]) => object[]): Report => {
  const recorded = report.uses.flatMap((one) => one.recording.recording.calls);
  return withUse(report, { recording: { ok: true, recording: { calls: change(recorded) } } });
};
const eachCall = (report: Report, change: object): Report =>
  calls(report, (all) => all.map((call) => ({ ...call, ...change })));
const signature = (text: string) => (report: Report) => ({ ...report, answerSignatures: [text] });
const answered = (value: Json) => ({ answer: { ok: true, value } });

/** What one report becomes. `other` is an honest report of the same agent for another message, `neighbour` one of another agent. */
export type Lie = (report: Report, other: Report, neighbour: Report) => Report;

export interface ExpectedEffect {
  /** The response; 204 by default. */
  status?: number;
  /** Whether its uses count; yes by default. */
  counts?: boolean;
}

export const LIES: readonly (readonly [lie: string, change: Lie, expected?: ExpectedEffect])[] = [
  ['no delivery', (report) => ({ ...report, deliveryToken: undefined }), { counts: false }],
  [
    'the delivery of another agent',
    (report, _, { deliveryToken }) => ({ ...report, deliveryToken }),
    { counts: false },
  ],
  ['a delivery that it made up', (report) => ({ ...report, deliveryToken: 'd1.e30.x' }), { counts: false }],
  [
    'a delivery that it edited',
    (report) => ({ ...report, deliveryToken: (report.deliveryToken ?? '').replace('d1.e', 'd1.f') }),
    { counts: false },
  ],
  [
    'a tool that its session does not have',
    (report) => withUse(report, { digest: digestOf('none') }),
    { counts: false },
  ],
  ['evidence of its own uses', (report) => ({ ...withUse(report, { evidence: 'observed' }), answerSignatures: [] })],
  ['evidence of its own calls', (report) => ({ ...eachCall(report, { evidence: 'observed' }), answerSignatures: [] })],
  ['another answer than the gateway gave', (report) => eachCall(report, answered({ hits: [{ key: 'k', value: 1 }] }))],
  ['an answer to other arguments', (report) => eachCall(report, { input: { query: 'another' } })],
  ['an answer to more arguments', (report) => eachCall(report, { input: { query: 'topic 1', limit: 6 } })],
  ['an answer of another tool', (report) => eachCall(report, { name: 'memory_get' })],
  ['an answer of a tool that no gateway carries', (report) => eachCall(report, { name: 'file_read' })],
  [
    'a failure in place of an answer',
    (report) => eachCall(report, { answer: { ok: false, code: 'TEMPER_TIMEOUT', message: '' } }),
  ],
  [
    'a call without an answer',
    (report) => calls(report, (all) => all.map(({ name, input, evidence }) => ({ name, input, evidence }))),
  ],
  ['a further call', (report) => calls(report, (all) => [...all, { ...all[0], input: { query: 'more' } }])],
  [
    'a clock that no composed tool has',
    (report) =>
      withUse(report, {
        recording: {
          ok: true,
          recording: { calls: [], sandbox: { startTime: 1, seed: '0'.repeat(32), answers: [] } },
        },
      }),
  ],
  ['the signature of another message', (report, { answerSignatures = [] }) => ({ ...report, answerSignatures })],
  ['the signature of another agent', (report, _, { answerSignatures = [] }) => ({ ...report, answerSignatures })],
  ['a signature that it made up', signature(`a1.${'A'.repeat(43)}`)],
  [
    'the delivery token as a signature',
    (report) => signature(report.deliveryToken ?? '')(report),
    { status: 400, counts: false },
  ],
  [
    'more signatures than a message has',
    (report) => ({ ...report, answerSignatures: Array(257).fill(`a1.${'A'.repeat(43)}`) }),
    { status: 400, counts: false },
  ],
  [
    'more calls than a recording has',
    (report) => calls(report, ([first]) => Array(65).fill(first) as object[]),
    { status: 400, counts: false },
  ],
  ['a verdict of its own', (report) => ({ ...report, verdicts: [{ approved: true }] }), { status: 400, counts: false }],
  ['a tier of its own', (report) => withUse(report, { tier: 'Shared' }), { status: 400, counts: false }],
  ['a time before its start', (report) => withUse(report, { milliseconds: -1 }), { status: 400, counts: false }],
  ['a digest of its own form', (report) => withUse(report, { digest: 'sha256:x' }), { status: 400, counts: false }],
  [
    'the uses of another agent',
    (report) => ({ ...withUse(report, { agent: 'agent-1', namespace: 'team-b' }), answerSignatures: [] }),
  ],
  ['another session', (report) => ({ ...withUse(report, { session: 's2' }), answerSignatures: [] })],
];

/** One of each kind that a pod can tell on its own: delivery, tool, evidence, answer, signature, verdict, tier, session. */
export const LIES_OF_A_POD: readonly string[] = [
  'no delivery',
  'a delivery that it made up',
  'a tool that its session does not have',
  'evidence of its own uses',
  'evidence of its own calls',
  'another answer than the gateway gave',
  'an answer to other arguments',
  'a further call',
  'the signature of another message',
  'a signature that it made up',
  'a verdict of its own',
  'a tier of its own',
  'another session',
];
