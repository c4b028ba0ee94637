import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { explainTrust } from '../../policy/trust/explain.ts';
import { BINDING, CREATED, manyTasks, NOW } from '../../policy/trust/trust.testing.ts';
import { explanationText } from './explanation-text.ts';
import { rateTarget } from './rate-target.ts';

describe('the explanation of a level', () => {
  const policy = { strategy: { type: 'Weighted' as const }, decay: { idle: '720h' } };
  const explain = (count: number) =>
    explainTrust({
      policy,
      binding: BINDING,
      trust: undefined,
      records: manyTasks(count, { rating: 9 }),
      now: NOW,
      createdAt: CREATED,
    });

  it('the text has the score with its terms, what is missing, what would lower the level, and when it is looked at again', () => {
    const text = explanationText('analyst', 'standard', explain(5));
    assert.match(text, /^Agent analyst has level sandboxed under TrustPolicy standard \(strategy Weighted/);
    assert.match(text, /Score 0\.7800:/);
    assert.match(text, /quality +0\.90 +30 % +5 tasks rated by users/);
    assert.match(text, /Next level restricted:/);
    assert.match(text, /NO +minTasks +10 completed tasks +5$/m);
    assert.match(text, /yes +minRatings +3 rated tasks +5$/m);
    assert.match(text, /idle: no task for 720h, .+, at 2026-12-22T/);
    assert.match(text, /evaluated again at 2026-12-22T/);
  });

  it('the text names the tool categories that tasks used, with what became of these tasks', () => {
    const records = [
      ...manyTasks(2, { rating: 9, categories: ['web', 'database'] }),
      ...manyTasks(1, { outcome: 'failed', categories: ['web'] }),
    ];
    const input = { policy, binding: BINDING, trust: undefined, now: NOW, createdAt: CREATED };
    const text = explanationText('analyst', 'standard', explainTrust({ ...input, records }));
    assert.match(
      text,
      /^Tool categories of the tasks: web 2 of 3 completed, 2 rated; database 2 of 2 completed, 2 rated\.$/m,
    );
    assert.doesNotMatch(explanationText('analyst', 'standard', explain(5)), /Tool categories/);
  });

  it('an explanation changes with its records only, and never the level itself', () => {
    assert.deepEqual(explain(5), explain(5));
    assert.equal(explain(60).level, 'sandboxed');
    assert.ok(explain(60).tracks[0]?.next?.requirements.every(({ met }) => met));
  });
});

describe('the arguments of a rating', () => {
  it('a message id names a message, any other text a session', () => {
    assert.deepEqual(rateTarget({ target: 'msg-1a', rating: '7' }), { message: 'msg-1a', rating: 7 });
    assert.deepEqual(rateTarget({ target: 's-1', rating: '10' }), { session: 's-1', rating: 10 });
  });

  it('another rating or category is refused', () => {
    for (const rating of ['11', '-1', '7.5', '', 'x', '1e1']) {
      assert.throws(() => rateTarget({ target: 's', rating }), { code: 'TEMPER_USAGE' });
    }
    assert.throws(() => rateTarget({ target: 's', rating: '1', category: 'magic' }), { code: 'TEMPER_USAGE' });
  });
});
