import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type DeactivatedTool, isDeactivated } from '../../api/v1alpha1/trust/deactivated-tools.ts';
import type { Digest } from '../../lib/canonical.ts';
import { type AgentTool, type ObservedAgentTools, planAgentTools } from './plan.ts';

const NOW = new Date('2031-05-05T12:00:00Z');
const digest = (name: string): Digest => `sha256:${name.padStart(64, '0')}`;
const [A, B, C] = [digest('a'), digest('b'), digest('c')];
const HARMFUL = { digest: A, cause: 'Harmful', message: '8 of its 8 tasks ended badly' } as const;

function tool(change: Partial<AgentTool> = {}): AgentTool {
  return {
    digest: A,
    name: 'csv_rows',
    inService: true,
    createdAt: '2031-05-01T00:00:00Z',
    verification: undefined,
    replaces: undefined,
    ...change,
  };
}

const LOST: DeactivatedTool = {
  digest: A,
  tool: 'csv_rows',
  cause: 'Harmful',
  message: 'figures',
  since: '2031-05-05T11:00:00.000Z',
};

function planned(change: Partial<ObservedAgentTools> = {}) {
  const { entries, transitions, usedTogether } = planAgentTools({
    now: NOW,
    before: [],
    pairsBefore: [],
    tools: [tool()],
    evidence: { findings: [], orders: [], usedTogether: [] },
    ...change,
  });
  return { entries, kinds: transitions.map(({ kind }) => kind), transitions, usedTogether };
}

const verification = (result: 'Passed' | 'Failed', verifiedAt: string): AgentTool['verification'] => ({
  result,
  verifiedAt,
  observedGeneration: 1,
  tests: 3,
  failedTests: result === 'Passed' ? 0 : 1,
  reruns: 0,
  successes: 0,
});

describe('the tools that leave the service of one agent', () => {
  it('a finding deactivates a tool in service, with its figures', () => {
    const { entries, kinds } = planned({ evidence: { findings: [HARMFUL], orders: [], usedTogether: [] } });
    assert.deepEqual(kinds, ['Deactivated']);
    const entry = { tool: 'csv_rows', ...HARMFUL, since: NOW.toISOString() };
    assert.deepEqual(entries, [entry]);
  });

  it('pairs of tools have names, without tools that the agent does not have or just lost, and two tools of one name', () => {
    const tools = [tool(), tool({ digest: B, name: 'csv_sum' }), tool({ digest: C, name: 'csv_rows' })];
    const pair = (one: Digest, other: Digest, percent: number) => ({ tools: [one, other] as const, percent });
    const pairs = [pair(A, C, 90), pair(B, A, 80), pair(B, C, 70), pair(B, digest('e'), 60)];
    const evidence = { findings: [], orders: [], usedTogether: pairs };
    const named = [{ tools: ['csv_rows', 'csv_sum'], percent: 80 }];
    assert.deepEqual(planned({ tools, evidence }).usedTogether, named);
    assert.deepEqual(
      planned({ tools: tools.slice(0, 2), evidence: { ...evidence, findings: [HARMFUL] } }).usedTogether,
      [],
    );
    assert.equal(planned({ tools, evidence: undefined }).usedTogether, undefined, 'the records are not read');
  });

  it('the share of a pair is in tens, and changes when it differs by ten percent', () => {
    const tools = [tool(), tool({ digest: B, name: 'csv_sum' })];
    const after = (percent: number, before?: number): number | undefined => {
      const pairsBefore = before === undefined ? [] : [{ tools: ['csv_rows', 'csv_sum'], percent: before }];
      const evidence = { findings: [], orders: [], usedTogether: [{ tools: [A, B] as const, percent }] };
      return planned({ tools, pairsBefore, evidence }).usedTogether?.[0]?.percent;
    };
    assert.deepEqual([after(44), after(1), after(100)], [40, 10, 100]);
    assert.deepEqual([after(49, 40), after(31, 40), after(50, 40), after(29, 40)], [40, 40, 50, 30]);
  });

  it('a finding about a tool that is not in service changes nothing, and neither do records that are not read', () => {
    const evidence = { findings: [HARMFUL], orders: [], usedTogether: [] };
    assert.deepEqual(planned({ evidence, tools: [tool({ inService: false })] }).entries, []);
    assert.deepEqual(planned({ evidence, tools: [tool({ inService: false })], before: [LOST] }).entries, [LOST]);
    assert.deepEqual(planned({ evidence: undefined, before: [LOST], tools: [tool({ inService: false })] }).kinds, []);
  });

  it('a promoted tool takes the place of the one that it names, once', () => {
    const replaces = { digest: A, message: 'the fewest messages used it' };
    const successor = tool({ digest: B, name: 'csv_sum', replaces, createdAt: '2031-05-05T11:59:00Z' });
    const { entries, kinds } = planned({ tools: [tool(), successor] });
    assert.deepEqual(
      [kinds, entries[0]?.cause, entries[0]?.message],
      [['Deactivated'], 'LeastUseful', replaces.message],
    );
    const returned = { ...LOST, reactivatedAt: '2031-05-05T11:59:30Z' };
    assert.deepEqual(planned({ tools: [tool(), successor], before: [returned] }).kinds, []);
    const waiting = { ...successor, inService: false };
    assert.deepEqual(planned({ tools: [tool(), waiting] }).kinds, [], 'the new one comes first');
  });

  it('an entry ends with the last object of its tool', () => {
    assert.deepEqual(planned({ before: [LOST], tools: [] }).entries, []);
  });

  it('a full list forgets tools that returned, and never one that is deactivated', () => {
    const many = (count: number, change: Partial<DeactivatedTool> = {}) =>
      Array.from({ length: count }, (_, index) => ({ ...LOST, digest: digest(`c${index}`), ...change }));
    const run = (before: DeactivatedTool[]) =>
      planned({
        before,
        tools: [
          tool(),
          ...before.map((entry) => tool({ digest: entry.digest as Digest, inService: !isDeactivated(entry) })),
        ],
        evidence: { findings: [HARMFUL], orders: [], usedTogether: [] },
      }).entries;
    const full = run(many(100));
    assert.equal(full.length, 100);
    assert.equal(
      full.some((entry) => entry.digest === A),
      false,
    );
    const [first, ...others] = many(100);
    const placed = run([{ ...(first ?? LOST), reactivatedAt: '2031-05-05T11:30:00Z' }, ...others]);
    assert.equal(placed.length, 100);
    assert.ok(placed.some((entry) => entry.digest === A));
  });
});

describe('the return of a tool', () => {
  const out = tool({ inService: false });
  const order = (requestedAt: string) => ({ digest: A, reason: 'corrected', requestedAt: Date.parse(requestedAt) });
  const ordered = (requestedAt: string, tools = [out], before: DeactivatedTool = LOST) =>
    planned({ before: [before], tools, evidence: { findings: [], orders: [order(requestedAt)], usedTogether: [] } });

  it('waiting brings none back: a user asks after the deactivation, and then its tests run', () => {
    assert.deepEqual(planned({ before: [LOST], tools: [out], now: new Date('2032-01-01T00:00:00Z') }).entries, [LOST]);
    assert.equal(ordered('2031-05-05T10:59:00Z').entries[0]?.requestedAt, undefined, 'an earlier order');
    assert.equal(ordered('2031-05-05T11:01:00Z').entries[0]?.requestedAt, NOW.toISOString());
  });

  it('a run before the order decides nothing, and one order starts one run', () => {
    const requested = { ...LOST, requestedAt: '2031-05-05T11:30:00.000Z' };
    const early = tool({ inService: false, verification: verification('Passed', '2031-05-05T11:29:00Z') });
    assert.deepEqual(planned({ before: [requested], tools: [early] }).entries, [requested]);
    const late = tool({ inService: false, verification: verification('Failed', '2031-05-05T11:31:00Z') });
    const refused = ordered('2031-05-05T11:01:00Z', [late], requested);
    assert.deepEqual([refused.kinds, refused.entries], [['ReactivationRefused'], [LOST]]);
    assert.deepEqual(ordered('2031-05-05T11:01:00Z', [late], LOST).entries, [LOST], 'the order is used');
    assert.equal(ordered('2031-05-05T11:32:00Z', [late], LOST).entries[0]?.requestedAt, NOW.toISOString());
  });

  it('a run that passes puts it into service with an empty record, and later findings deactivate it again', () => {
    const requested = { ...LOST, requestedAt: '2031-05-05T11:30:00.000Z' };
    const passed = tool({ inService: false, verification: verification('Passed', '2031-05-05T11:31:00Z') });
    const { entries, kinds } = planned({ before: [requested], tools: [passed] });
    assert.deepEqual([kinds, entries], [['Reactivated'], [{ ...LOST, reactivatedAt: NOW.toISOString() }]]);
    const again = planned({
      before: entries,
      evidence: { findings: [HARMFUL], orders: [], usedTogether: [] },
      now: new Date('2031-05-06'),
    });
    assert.deepEqual([again.kinds, again.entries[0]?.since], [['Deactivated'], '2031-05-06T00:00:00.000Z']);
  });
});
