import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ToolCandidate, JudgeVerdict } from '../../forge/types.ts';
import { TemperError } from '../../lib/errors.ts';
import type { JsonObject } from '../../lib/json.ts';
import type { ModelEvent, ModelRequest } from '../../models/port.ts';
import { createJudge } from './judge.ts';
import { createPanel, type PanelVerdict } from './panel.ts';
import { sessionTool } from '../registry/registered-tool.ts';
import {
  aCaller,
  anAcceptance,
  anArtifact,
  anEndEvent,
  anOp,
  createFakeClock,
  nonceIn,
  approveAll,
  scriptedModel,
} from '../tempering.testing.ts';

const accepted = anAcceptance();
const candidate: ToolCandidate = { ...accepted, evidence: { tests: [], milliseconds: 1, heapBytes: 1, warnings: [] } };

let nonces = 0;
const nonce = (): string => `nonce-${(nonces += 1)}`;

function judged(
  answer: (request: ModelRequest) => string | ModelEvent[],
  judgeModel: string | undefined = 'replay/judge',
): Promise<JudgeVerdict> {
  const judge = createJudge({ model: scriptedModel(answer), judgeModel, clock: createFakeClock(), nonce });
  return judge.review(candidate, 'replay/author', anOp());
}

async function refusedAs(
  code: JudgeVerdict['code'],
  answer: (request: ModelRequest) => string | ModelEvent[],
): Promise<void> {
  const verdict = await judged(answer);
  assert.equal(verdict.approved, false);
  assert.equal(verdict.code, code, verdict.reasoning);
  if (code === 'TEMPER_JUDGE_UNAVAILABLE') assert.equal(verdict.confidence, 0);
}

describe('the judge', () => {
  it('the judge approves after a clear yes to every question and records model and prompt digest', async () => {
    const first = await judged((request) => approveAll(request, { confidence: 0.93 }));
    const second = await judged((request) => `\n\`\`\`json\n${approveAll(request, { confidence: 0.93 })}\n\`\`\`\n`);
    assert.equal(first.approved, true);
    assert.equal(first.confidence, 0.93);
    assert.equal(first.model, 'replay/judge');
    assert.match(first.promptDigest, /^sha256:/);
    assert.deepEqual(first.citedLines, [4]);
    assert.deepEqual({ ...second }, { ...first });
  });
  it('the judge request has temperature 0, the candidate between markers and the instructions after them', async () => {
    const model = scriptedModel(approveAll);
    await createJudge({ model, judgeModel: 'replay/judge', clock: createFakeClock(), nonce }).review(
      candidate,
      'replay/author',
      anOp(),
    );
    const [request] = model.requests;
    assert.ok(request);
    const text = request.messages[0]?.role === 'user' ? request.messages[0].text : '';
    const word = nonceIn(request);
    assert.equal(request.temperature, 0);
    assert.equal(request.system.includes(word), false);
    assert.ok(text.indexOf(`-----BEGIN ${word}-----`) < text.indexOf('function execute(input)'));
    assert.ok(text.indexOf('function execute(input)') < text.indexOf(`-----END ${word}-----`));
    assert.ok(text.indexOf(`-----END ${word}-----`) < text.indexOf('exactly one JSON object'));
  });
  it('a judge without a configured model refuses', async () => {
    const judge = createJudge({
      model: scriptedModel(approveAll),
      judgeModel: undefined,
      clock: createFakeClock(),
      nonce,
    });
    assert.equal((await judge.review(candidate, 'replay/author', anOp())).code, 'TEMPER_JUDGE_UNAVAILABLE');
  });
  it('a judge refuses a tool written by its own model', async () => {
    const judge = createJudge({
      model: scriptedModel(approveAll),
      judgeModel: 'Replay/Author',
      clock: createFakeClock(),
      nonce,
    });
    const verdict = await judge.review(candidate, 'replay/author', anOp());
    assert.equal(verdict.code, 'TEMPER_JUDGE_UNAVAILABLE');
  });
  for (const [part, flag] of [
    ['safety', 'passed'],
    ['correctness', 'passed'],
    ['determinism', 'likely'],
    ['bounded', 'likely'],
  ] as const) {
    it(`the judge refuses when ${part} is not confirmed, regardless of "approved"`, async () => {
      await refusedAs('TEMPER_JUDGE_REFUSED', (request) =>
        approveAll(request, { [part]: { [flag]: false, concerns: ['reads the clock'] } }),
      );
      await refusedAs('TEMPER_JUDGE_UNAVAILABLE', (request) => approveAll(request, { [part]: { [flag]: 'true' } }));
      await refusedAs('TEMPER_JUDGE_UNAVAILABLE', (request) => approveAll(request, { [part]: null }));
    });
  }
  it('the judge refuses without "approved", below the minimum confidence and with an invalid confidence', async () => {
    await refusedAs('TEMPER_JUDGE_REFUSED', (request) => approveAll(request, { approved: false }));
    await refusedAs('TEMPER_JUDGE_REFUSED', (request) => approveAll(request, { confidence: 0.69 }));
    for (const confidence of ['1', 1.01, -0.1, null, 95]) {
      await refusedAs('TEMPER_JUDGE_UNAVAILABLE', (request) => approveAll(request, { confidence }));
    }
    await refusedAs('TEMPER_JUDGE_UNAVAILABLE', (request) => approveAll(request, { approved: 'yes' }));
  });
  const unusable: Record<string, (request: ModelRequest) => string | ModelEvent[]> = {
    'an empty response': () => '',
    'plain text': () => 'approved: true',
    'an incomplete object': (request) => approveAll(request).slice(0, -2),
    'two objects': (request) => `${approveAll(request)}\n${approveAll(request)}`,
    'a response without a nonce': (request) => approveAll(request, { nonce: null }),
    'the nonce of another call': (request) => approveAll(request, { nonce: 'nonce-0' }),
    'a duplicate member': (request) => approveAll(request, { approved: false }).replace(/\}$/, ',"approved":true}'),
    'a truncated response': (request) => [{ type: 'text', text: approveAll(request) }, anEndEvent('m', 'length')],
    'a refusal by the provider': (request) => [{ type: 'text', text: approveAll(request) }, anEndEvent('m', 'refusal')],
    'a stream without an end event': (request) => [{ type: 'text', text: approveAll(request) }],
    'a tool call': (request) => [
      { type: 'tool-call', call: { id: '1', name: 'forge_tool', arguments: '{}' } },
      { type: 'text', text: approveAll(request) },
      anEndEvent('m'),
    ],
    'endless text': () => Array.from({ length: 100 }, (): ModelEvent => ({ type: 'text', text: 'x'.repeat(1_000) })),
  };
  for (const [what, answer] of Object.entries(unusable)) {
    it(`the judge treats ${what} as unavailable and refuses`, () => refusedAs('TEMPER_JUDGE_UNAVAILABLE', answer));
  }
  it('the judge refuses when the provider fails', () =>
    refusedAs('TEMPER_JUDGE_UNAVAILABLE', () => {
      throw new TemperError('TEMPER_MODEL_OVERLOADED', 'busy');
    }));
  it('a judge that is the author judges only when the policy permits it, and its verdict records it', async () => {
    const asAuthor = (mayBeAuthor: boolean | undefined): Promise<JudgeVerdict> =>
      createJudge({
        model: scriptedModel(approveAll),
        judgeModel: 'replay/judge',
        ...(mayBeAuthor === undefined ? {} : { mayBeAuthor }),
        clock: createFakeClock(),
        nonce,
      }).review(candidate, 'replay/JUDGE', anOp());
    for (const mayBeAuthor of [undefined, false]) {
      const refused = await asAuthor(mayBeAuthor);
      assert.equal(refused.code, 'TEMPER_JUDGE_UNAVAILABLE');
      assert.match(refused.reasoning, /spec\.models\.judgeMayBeAuthor/);
    }
    const permitted = await asAuthor(true);
    assert.deepEqual([permitted.approved, permitted.judgeIsAuthor], [true, true]);
    assert.equal((await judged(approveAll)).judgeIsAuthor, undefined);
  });
  it('the judge gives no verdict when the ledger is unavailable, because no model was called', async () => {
    const unavailable = (): string => {
      throw new TemperError('TEMPER_LEDGER_UNAVAILABLE', 'the counters are unavailable', { retry: 'backoff' });
    };
    await assert.rejects(judged(unavailable), { code: 'TEMPER_LEDGER_UNAVAILABLE', retry: 'backoff' });
  });
  it('the judge refuses when the call is already aborted', async () => {
    const model = scriptedModel(approveAll);
    const judge = createJudge({ model, judgeModel: 'replay/judge', clock: createFakeClock(), nonce });
    const verdict = await judge.review(candidate, 'replay/author', {
      ...anOp(),
      signal: AbortSignal.abort(new Error('aborted')),
    });
    assert.equal(verdict.approved, false);
  });
  it('the judge refuses a tool whose source does not parse', async () => {
    const broken = anArtifact('double', { implementation: { mode: 'Sandbox', source: 'function execute( {' } });
    const judge = createJudge({
      model: scriptedModel(approveAll),
      judgeModel: 'replay/judge',
      clock: createFakeClock(),
      nonce,
    });
    const verdict = await judge.review({ ...candidate, artifact: broken }, 'replay/author', anOp());
    assert.equal(verdict.code, 'TEMPER_JUDGE_UNAVAILABLE');
  });
  it('a judge with prepared material builds none itself, and refuses a tool that could not be presented', async () => {
    const model = scriptedModel((request) => approveAll(request, { lines: [1] }));
    const judge = createJudge({ model, judgeModel: 'replay/judge', clock: createFakeClock(), nonce });
    const unreadable = { ...candidate, artifact: anArtifact('double', { inputSchema: 'no JSON' }) };
    const verdict = await judge.review(unreadable, 'replay/author', anOp(), { ok: true, text: 'PREPARED' });
    assert.equal(verdict.approved, true);
    assert.match(
      model.requests[0]?.messages[0]?.text ?? '',
      /^1\| PREPARED\n2\| \{"runs":\[\],"measured":\{"milliseconds":1,/m,
    );
    const refused = await judge.review(candidate, 'replay/author', anOp(), { ok: false, problem: 'too long' });
    assert.match(refused.reasoning, /cannot be presented to a judge: too long/);
    assert.equal(model.requests.length, 1, 'no model is asked without material');
  });
  it('the reasoning in a verdict is printable and bounded', async () => {
    const verdict = await judged((request) =>
      approveAll(request, { approved: false, reasoning: `\u001b[31m\u202e${'x'.repeat(5_000)}` }),
    );
    assert.ok(verdict.reasoning.length < 1_000);
    // oxlint-disable-next-line no-control-regex
    assert.doesNotMatch(verdict.reasoning, /[\u0000-\u001f\u202e]/);
  });
});

describe('the prompts of Temper', () => {
  it('the part of each prompt that Temper writes has the digest of this release', async () => {
    const tool = sessionTool(accepted, aCaller(), '2026-03-01T09:00:00.000Z');
    const panel = createPanel({
      model: scriptedModel(approveAll),
      reviewers: ['replay/a', 'replay/b'],
      clock: createFakeClock(),
      nonce,
    });
    const { verdicts } = await panel.review(tool, {}, anOp());
    const digests = [await judged(approveAll), ...verdicts].map(({ templateDigest }) => templateDigest?.slice(0, 15));
    // An auditor compares them with the records: change them only together with a prompt.
    assert.deepEqual(digests, ['sha256:45048961', 'sha256:db15d7a5', 'sha256:3eed9b23']);
  });
});

describe('the panel', () => {
  const tool = sessionTool(accepted, aCaller(), '2026-03-01T09:00:00.000Z');
  function reviewed(
    answers: { safety?: JsonObject; correctness?: JsonObject } = {},
    reviewers: readonly string[] = ['replay/safety', 'replay/correctness'],
  ): Promise<PanelVerdict> {
    const model = scriptedModel((request) =>
      approveAll(request, (request.model.endsWith('safety') ? answers.safety : answers.correctness) ?? {}),
    );
    return createPanel({ model, reviewers, clock: createFakeClock(), nonce }).review(
      tool,
      { reruns: 5, successes: 5 },
      anOp(),
    );
  }
  it('the panel approves when both reviewers approve, with the lower confidence', async () => {
    const verdict = await reviewed({ safety: { confidence: 0.91 }, correctness: { confidence: 0.9 } });
    assert.equal(verdict.approved, true);
    assert.equal(verdict.confidence, 0.9);
  });
  it('the panel sends different questions to two models independently', async () => {
    const model = scriptedModel(approveAll);
    await createPanel({ model, reviewers: ['replay/a', 'replay/b'], clock: createFakeClock(), nonce }).review(
      tool,
      {},
      anOp(),
    );
    const [first, second] = model.requests;
    assert.ok(first && second);
    assert.notEqual(first.system, second.system);
    assert.notEqual(first.model, second.model);
    assert.notEqual(nonceIn(first), nonceIn(second));
  });
  it('the panel refuses when one reviewer refuses or its response is unusable', async () => {
    for (const reviewer of ['safety', 'correctness']) {
      assert.equal((await reviewed({ [reviewer]: { approved: false } })).code, 'TEMPER_JUDGE_REFUSED');
      assert.equal((await reviewed({ [reviewer]: { approved: 1 } })).code, 'TEMPER_JUDGE_UNAVAILABLE');
      assert.equal((await reviewed({ [reviewer]: { nonce: 'x' } })).approved, false);
      assert.equal((await reviewed({ [reviewer]: { confidence: 'high' } })).confidence, 0);
    }
  });
  it('the panel refuses without two different models and when the author is one of them', async () => {
    for (const reviewers of [[], ['replay/a'], ['replay/a', 'replay/A'], ['replay/a', 'replay/author']]) {
      const verdict = await reviewed({}, reviewers);
      assert.equal(verdict.code, 'TEMPER_JUDGE_UNAVAILABLE', reviewers.join());
    }
  });
});
