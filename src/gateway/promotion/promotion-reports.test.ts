import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { promotionRules } from '../../tempering/promotion/promotion-rules.ts';
import { aSharedTool } from '../../tempering/tempering.testing.ts';
import { emptyUseRecord, statisticsOf } from '../../tempering/use/use-record.ts';
import { describeGaps } from './promotion-reports.ts';

const RULES = promotionRules({});
const unused = statisticsOf(emptyUseRecord('sha256:0', 'team-a'));

describe('the promotion that a gateway reports of a session tool', () => {
  it('a tool that uses fetch names the network egress that it waits for, and another tool does not', () => {
    const requires = { apis: ['fetch' as const], domains: ['api.example.com'], paths: [] };
    const fetching = describeGaps(aSharedTool('get', { requires }), unused, RULES);
    assert.match(fetching.reason, /0 of 5 successful uses.*pods have no network egress.*TEMPER_EGRESS_UNAVAILABLE/);
    assert.equal(fetching.next, 'forge a tool that needs no network');
    const other = describeGaps(aSharedTool('double'), unused, RULES);
    assert.match(other.reason, /0 of 5 successful uses/);
    assert.doesNotMatch(other.reason, /egress/);
    assert.equal(other.next, 'further successful uses request it');
  });
});
