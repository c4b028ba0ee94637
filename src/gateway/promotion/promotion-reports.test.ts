import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { promotionRules } from '../../tempering/promotion/promotion-rules.ts';
import { aSharedTool } from '../../tempering/tempering.testing.ts';
import { emptyUseRecord, statisticsOf } from '../../tempering/use/use-record.ts';
import { describeGaps } from './promotion-reports.ts';

const rules = promotionRules({});
const unused = statisticsOf(emptyUseRecord('sha256:0', 'team-a'));

describe('the promotion that a gateway reports of a session tool', () => {
  const requires = { apis: ['fetch' as const], domains: ['api.example.com'], paths: [] };
  const [fetching, other] = [aSharedTool('get', { requires }), aSharedTool('double')];

  it('a tool without successful uses names how many it needs', () => {
    const gaps = [
      describeGaps(fetching, unused, { rules, hasEgress: true }),
      describeGaps(other, unused, { rules, hasEgress: true }),
      describeGaps(other, unused, { rules, hasEgress: false }),
    ];
    for (const { reason, next } of gaps) {
      assert.match(reason, /0 of 5 successful uses/);
      assert.doesNotMatch(reason, /egress/);
      assert.equal(next, 'further successful uses request it');
    }
  });

  it('a tool that uses fetch names the egress proxy that the release does not run', () => {
    const { reason, next } = describeGaps(fetching, unused, { rules, hasEgress: false });
    assert.match(reason, /0 of 5 successful uses.*runs no egress proxy.*TEMPER_EGRESS_UNAVAILABLE/);
    assert.match(next, /^set egress\.enabled of the chart, or forge/);
  });
});
