import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { promotionRules } from '../../tempering/promotion/promotion-rules.ts';
import { aSharedTool } from '../../tempering/tempering.testing.ts';
import { emptyUseRecord, statisticsOf } from '../../tempering/use/use-record.ts';
import { describeGaps } from './promotion-reports.ts';

const RULES = promotionRules({});
const unused = statisticsOf(emptyUseRecord('sha256:0', 'team-a'));

describe('the promotion that a gateway reports of a session tool', () => {
  it('a tool without successful uses names how many it needs, also when it uses fetch', () => {
    const requires = { apis: ['fetch' as const], domains: ['api.example.com'], paths: [] };
    for (const tool of [aSharedTool('get', { requires }), aSharedTool('double')]) {
      const { reason, next } = describeGaps(tool, unused, RULES);
      assert.match(reason, /0 of 5 successful uses/);
      assert.equal(next, 'further successful uses request it');
    }
  });
});
