import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createManifestLoader } from '../../api/manifests.ts';
import { FakeClock } from '../../lib/fake-clock.testing.ts';
import type { Model, ModelInput } from '../../models/port.ts';
import { PATTERN_RULES } from '../../policy/patterns/pattern-rules.ts';
import { anAgentSpec } from '../../policy/policy.testing.ts';
import { specialistRefusal } from './specialist-judge.ts';
import { wantedSpecialist } from '../../policy/children/wanted-specialist.ts';

const PARENT = anAgentSpec({ model: { primary: 'p/one' }, grants: { tools: ['*'] } });
const MANIFESTS = createManifestLoader({ patterns: PATTERN_RULES });
const INPUT = {
  role: 'SQL_Reviewer',
  instructions: 'Review SQL.\nName each slow join.',
  task: 'SELECT 1',
  reason: 'I have no experience with SQL',
  tools: ['file_read'],
};
const APPROVAL = { nonce: 'N', lines: [1], fits: true, harmless: true, approved: true, reasoning: 'fine' };

/** The refusal that a judge with this answer gives, and what it was asked. */
async function judged(
  answer: object | string,
  change: { judge?: string | undefined; judgeMayBeAuthor?: boolean } = {},
) {
  const asked: ModelInput[] = [];
  const model = {
    async *stream(request: ModelInput) {
      asked.push(request);
      yield { type: 'text', text: typeof answer === 'string' ? answer : JSON.stringify(answer) };
      yield { type: 'end', stopReason: 'stop', model: 'p/judge', usage: { inputTokens: 1, outputTokens: 1 } };
    },
  } as unknown as Model;
  const deps = { model, judge: 'p/judge', authors: ['p/one'], judgeMayBeAuthor: false, ...change };
  const op = { signal: new AbortController().signal, deadline: 1_000, key: 'k' };
  const all = { ...deps, clock: new FakeClock(), nonce: () => 'N' };
  return { refusal: await specialistRefusal(wantedSpecialist(INPUT, PARENT, MANIFESTS), all, op), asked };
}

describe('the judge of a specialist', () => {
  it('a clear yes to every question refuses nothing, and the judge reads everything that the agent wrote', async () => {
    const { refusal, asked } = await judged(APPROVAL);
    assert.equal(refusal, undefined);
    const prompt = JSON.stringify(asked[0]?.messages);
    for (const part of [
      'SQL_Reviewer',
      'Name each slow join.',
      'SELECT 1',
      'no experience',
      'file_read',
      'another agent',
    ])
      assert.ok(prompt.includes(part), part);
  });

  for (const [what, change] of [
    ['a task that does not fit', { fits: false }],
    ['harm', { harmless: false }],
    ['no approval', { approved: false }],
    ['an answer of another form', { approved: 'yes' }],
  ] as const) {
    it(`${what} refuses`, async () => {
      assert.match((await judged({ ...APPROVAL, ...change })).refusal ?? '', /^the judge refused: .*fine$/);
    });
  }

  it('an unusable answer, no judge, and a judge that wrote the request refuse', async () => {
    assert.match((await judged('yes')).refusal ?? '', /no usable answer/);
    assert.match((await judged({ ...APPROVAL, nonce: 'other' })).refusal ?? '', /no usable answer/);
    const without = await judged(APPROVAL, { judge: undefined });
    assert.match(without.refusal ?? '', /name one in TrustPolicy spec\.models\.judge/);
    const own = await judged(APPROVAL, { judge: 'p/one' });
    assert.match(own.refusal ?? '', /is a model of the agent/);
    assert.deepEqual([...without.asked, ...own.asked], []);
    assert.equal((await judged(APPROVAL, { judge: 'p/one', judgeMayBeAuthor: true })).refusal, undefined);
  });
});

describe('the manifest of a specialist', () => {
  it('it has the instructions as its prompt, its tools, and nothing else of its own', () => {
    const { name, spec } = wantedSpecialist(INPUT, PARENT, MANIFESTS);
    assert.equal(name, 'sql-reviewer');
    assert.deepEqual(spec, {
      trustPolicyRef: PARENT.trustPolicyRef,
      model: { primary: 'p/one' },
      prompt: { system: INPUT.instructions },
      grants: { tools: ['file_read'] },
    });
  });

  for (const [what, change] of [
    ['a reserved role', { role: 'System' }],
    ['a role that is no name', { role: '1st' }],
    ['no task', { task: ' ' }],
    ['long instructions', { instructions: 'x'.repeat(8_193) }],
    ['no reason', { reason: 7 }],
    ['tools that are no names', { tools: [1] }],
  ] as const) {
    it(`${what} is refused`, () => {
      assert.throws(
        () => wantedSpecialist({ ...INPUT, ...change } as never, PARENT, MANIFESTS),
        /TEMPER_TOOL_INPUT_INVALID|specialist|child/,
      );
    });
  }
});
