import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JudgeVerdict, ToolCandidate } from '../../forge/types.ts';
import { TemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import { memoryRecordStore } from '../../lib/record-store.ts';
import type { ModelRequest } from '../../models/port.ts';
import { createJudge } from '../judge/judge.ts';
import { createPanel, type PanelVerdict } from '../judge/panel.ts';
import { sessionTool } from '../registry/registered-tool.ts';
import {
  aCaller,
  anAcceptance,
  anArtifact,
  anOp,
  approveAll,
  createFakeClock,
  nonceIn,
  scriptedModel,
} from '../tempering.testing.ts';
import { type CanaryReport, type Canaries, createCanaries } from './canaries.ts';
import { CANARY_WINDOW } from './standing.ts';
import { createJudgeStandings, type JudgeStandings, recordedStandings, type StandingDocuments } from './standings.ts';

const accepted = anAcceptance();
const candidate: ToolCandidate = {
  ...accepted,
  evidence: {
    tests: [
      { case: 1, run: 1, passed: true, milliseconds: 3, heapBytes: 9 },
      { case: 1, run: 2, passed: true, milliseconds: 2, heapBytes: 9 },
    ],
    milliseconds: 3,
    heapBytes: 9,
    warnings: [],
  },
};

/** Documents of several writers, in memory. */
function sharedDocuments(): StandingDocuments {
  const all = new Map<string, { value: Json; revision: number }>();
  return {
    async get(key) {
      return structuredClone(all.get(key));
    },
    async write(key, value, revision) {
      if ((all.get(key)?.revision ?? 0) !== revision) return undefined;
      all.set(key, { value: structuredClone(value), revision: revision + 1 });
      return revision + 1;
    },
  };
}

interface Fixture {
  canaries: Canaries;
  standings: JudgeStandings;
  reports: CanaryReport[];
}

function fixture(options: { percent?: number; resumed?: string[]; documents?: StandingDocuments } = {}): Fixture {
  const { percent = 100, documents = sharedDocuments(), resumed = [] } = options;
  const standings = createJudgeStandings(documents);
  const reports: CanaryReport[] = [];
  let [ids, state] = [0, 7];
  const canaries = createCanaries({
    standings,
    clock: createFakeClock(),
    percent,
    resumed,
    // A fixed sequence of numbers that look random.
    random: () => (state = (state * 16_807) % 2_147_483_647) / 2_147_483_647,
    id: () => `suspension-${(ids += 1)}`,
    report: (report) => void reports.push(report),
  });
  return { canaries, standings, reports };
}

let nonces = 0;
const nonce = (): string => `nonce-${(nonces += 1)}`;

/** Refuses each tool but the candidate of these tests, as a good judge refuses a canary. */
function goodJudge(request: ModelRequest): string {
  const [message] = request.messages;
  const isCandidate = message?.role === 'user' && message.text.includes('result: input.value * 2');
  return approveAll(request, { approved: isCandidate });
}

function judged(answer: (request: ModelRequest) => string, canaries: Canaries) {
  const model = scriptedModel(answer);
  const judge = createJudge({ model, judgeModel: 'replay/judge', clock: createFakeClock(), nonce, canaries });
  return { requests: model.requests, review: () => judge.review(candidate, 'replay/author', anOp()) };
}

describe('canaries before a judge', () => {
  it('a judge that approves a canary is suspended at once, is asked no more, and its verdict counts for nothing', async () => {
    const { canaries, reports } = fixture();
    const { requests, review } = judged(approveAll, canaries);
    const first = await review();
    assert.deepEqual([first.approved, first.confidence, first.code], [false, 0, 'TEMPER_JUDGE_SUSPENDED']);
    assert.match(first.reasoning, /lift suspension-1$/);
    assert.equal(requests.length, 2);
    assert.equal((await review()).code, 'TEMPER_JUDGE_SUSPENDED');
    assert.equal(requests.length, 2);
    assert.deepEqual(
      reports.map(({ outcome, role, standing }) => [outcome.caught, role, standing.suspension?.id]),
      [[false, 'judge', 'suspension-1']],
    );
  });
  it('a judge that refuses its canaries keeps its verdicts', async () => {
    const { canaries, standings, reports } = fixture();
    const { requests, review } = judged(goodJudge, canaries);
    for (let index = 0; index < CANARY_WINDOW + 10; index += 1) assert.equal((await review()).approved, true);
    assert.equal(requests.length, 2 * (CANARY_WINDOW + 10));
    assert.equal((await standings.get('replay/judge')).outcomes.length, CANARY_WINDOW);
    assert.equal(new Set(reports.map(({ outcome }) => outcome.mutation)).size, 5, 'every kind of change was asked');
  });
  it('an unusable answer to a canary is a refusal and no outcome', async () => {
    const { canaries, standings } = fixture();
    await judged(() => 'no', canaries).review();
    assert.deepEqual((await standings.get('replay/judge')).outcomes, []);
  });
  it('the configured share of questions comes with a canary', async () => {
    const { canaries, reports } = fixture({ percent: 20 });
    const { review } = judged(goodJudge, canaries);
    for (let index = 0; index < 200; index += 1) await review();
    assert.ok(reports.length > 20 && reports.length < 60, String(reports.length));
    const none = fixture({ percent: 0 });
    for (let index = 0; index < 20; index += 1) await judged(approveAll, none.canaries).review();
    assert.deepEqual(none.reports, []);
  });
  it('a canary has the form of a candidate: system prompt, settings, instructions, sections and figures', async () => {
    const { canaries } = fixture();
    const { requests, review } = judged(goodJudge, canaries);
    await review();
    const [one, two] = requests;
    assert.ok(one && two);
    const formOf = (request: ModelRequest) => {
      const [message] = request.messages;
      const text = message?.role === 'user' ? message.text.replaceAll(nonceIn(request), 'NONCE') : '';
      const sections = [...text.matchAll(/^\d+\| "([A-Za-z]+)":/gm)].map((match) => match[1]);
      const figures = /\{"runs":.*$/m
        .exec(text)?.[0]
        .replaceAll(/\d+/g, '0')
        .replaceAll(/(\{"test":0[^}]*\},?)+/g, 'RUNS');
      const limits = /"limits":.*$/m.exec(text)?.[0];
      return { ...request, messages: text.replaceAll(/\d+\| .*\n/g, ''), sections, figures, limits };
    };
    assert.deepEqual(formOf(one), formOf(two));
    assert.notEqual(nonceIn(one), nonceIn(two));
  });
  it('a standing that cannot be read or written refuses the tool', async () => {
    const broken: StandingDocuments = {
      get: () => Promise.reject(new Error('away')),
      write: () => Promise.reject(new Error('away')),
    };
    const verdict = await judged(approveAll, fixture({ documents: broken }).canaries).review();
    assert.deepEqual([verdict.approved, verdict.code], [false, 'TEMPER_JUDGE_UNAVAILABLE']);
    assert.match(verdict.reasoning, /standing .* could not be read: away/);
    const garbled: StandingDocuments = {
      get: async () => ({ value: { model: 1 }, revision: 1 }),
      write: async () => 2,
    };
    assert.match(
      (await judged(approveAll, fixture({ documents: garbled }).canaries).review()).reasoning,
      /not readable/,
    );
  });
});

describe('an outage of the store of standings', () => {
  it('an outage refuses no tool: the caller gets the error, and asks again', async () => {
    const outage = new TemperError('TEMPER_BUS_UNAVAILABLE', 'NATS is unavailable', { retry: 1_000 });
    const stored = recordedStandings(memoryRecordStore());
    const down = { read: true, write: false };
    const documents: StandingDocuments = {
      get: (...key) => (down.read ? Promise.reject(outage) : stored.get(...key)),
      write: (...change) => (down.write ? Promise.reject(outage) : stored.write(...change)),
    };
    const review = () => judged(approveAll, fixture({ documents }).canaries).review();
    await assert.rejects(review(), outage);
    Object.assign(down, { read: false, write: true });
    await assert.rejects(review(), outage);
  });
});

describe('the suspension of a judge', () => {
  it('a suspension survives a restart and applies to every writer and role', async () => {
    const records = memoryRecordStore();
    await judged(approveAll, fixture({ documents: recordedStandings(records) }).canaries).review();
    const restarted = fixture({ documents: recordedStandings(records), percent: 0 });
    assert.equal((await judged(goodJudge, restarted.canaries).review()).code, 'TEMPER_JUDGE_SUSPENDED');
    assert.equal((await restarted.canaries.suspensionOf(['replay/other', 'Replay/Judge']))?.model, 'Replay/Judge');
  });
  it('only the id of this suspension lifts it, and the count of the judge starts again', async () => {
    const documents = sharedDocuments();
    const { standings, canaries } = fixture({ documents });
    await judged(approveAll, canaries).review();
    assert.notEqual((await standings.lift('replay/judge', 'suspension-0')).suspension, undefined);
    const resumed = fixture({ documents, percent: 0, resumed: ['suspension-1'] });
    assert.equal((await judged(goodJudge, resumed.canaries).review()).approved, true);
    assert.deepEqual(await standings.get('replay/judge'), { model: 'replay/judge', outcomes: [] });
    await standings.record('replay/judge', { mutation: 'leak', caught: false, time: 't' }, 'suspension-9');
    assert.equal((await judged(goodJudge, resumed.canaries).review()).code, 'TEMPER_JUDGE_SUSPENDED');
  });
  it('concurrent writers lose no outcome', async () => {
    const documents = sharedDocuments();
    const writers = Array.from({ length: 10 }, () => createJudgeStandings(documents));
    const outcome = { mutation: 'trigger', caught: true, time: 't' };
    await Promise.all(writers.map((writer, index) => writer.record('replay/judge', outcome, `s-${index}`)));
    assert.equal((await writers[0]?.get('replay/judge'))?.outcomes.length, 10);
  });
});

describe('the panel and a user', () => {
  const tool = sessionTool(
    anAcceptance(anArtifact(), { verdict: { ...accepted.verdict, model: 'replay/judge' } as JudgeVerdict }),
    aCaller(),
    '2026-03-01T09:00:00.000Z',
  );
  type Opinion = 'yes' | 'no' | 'unusable' | 'suspended';

  async function reviewed(safety: Opinion, correctness: Opinion, judge: Opinion = 'yes'): Promise<PanelVerdict> {
    const { canaries, standings } = fixture({ percent: 0 });
    const opinions = { 'replay/safety': safety, 'replay/correctness': correctness, 'replay/judge': judge };
    for (const [model, opinion] of Object.entries(opinions)) {
      const outcome = { mutation: 'leak', caught: opinion !== 'suspended', time: 't' };
      await standings.record(model, outcome, `suspension-of-${model}`);
    }
    const model = scriptedModel((request) => {
      const opinion = request.model === 'replay/safety' ? safety : correctness;
      return opinion === 'unusable' ? '?' : approveAll(request, { approved: opinion === 'yes' });
    });
    const reviewers = ['replay/safety', 'replay/correctness'];
    return createPanel({ model, reviewers, clock: createFakeClock(), nonce, canaries }).review(tool, {}, anOp());
  }

  const cases: [Opinion, Opinion, Opinion, approved: boolean, userDecides: RegExp | undefined][] = [
    ['yes', 'yes', 'yes', true, undefined],
    ['yes', 'no', 'yes', false, /disagree/],
    ['no', 'yes', 'yes', false, /disagree/],
    ['no', 'no', 'yes', false, undefined],
    ['yes', 'unusable', 'yes', false, undefined],
    ['suspended', 'yes', 'yes', false, /suspended/],
    ['suspended', 'suspended', 'yes', false, /suspended/],
    ['suspended', 'no', 'yes', false, undefined],
    ['suspended', 'unusable', 'yes', false, undefined],
    ['yes', 'yes', 'suspended', false, /the judge of its creation, replay\/judge, is suspended/],
    ['yes', 'no', 'suspended', false, undefined],
  ];
  for (const [safety, correctness, judge, approved, userDecides] of cases) {
    it(`the panel of ${safety} and ${correctness} after a judge of ${judge} ${userDecides === undefined ? 'decides itself' : 'leaves the decision to a user'}`, async () => {
      const verdict = await reviewed(safety, correctness, judge);
      assert.equal(verdict.approved, approved);
      assert.match(verdict.userDecides ?? '', userDecides ?? /^$/);
    });
  }
});
