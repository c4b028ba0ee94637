import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { InvalidArgumentError, Command } from 'commander';
import type { UsageBreakdown } from '../../gateway-api/user-api.ts';
import { addBreakdownOptions, firstDay } from './breakdown-options.ts';
import { printBreakdown } from './print-breakdown.ts';

const REPORT: UsageBreakdown = {
  by: 'Agent',
  since: '2026-05-01',
  rows: [
    { name: 'lead', calls: 1_200, inputTokens: 30_000, outputTokens: 400, costMicros: 1_500_000, unpriced: [] },
    { name: 'lead-one', calls: 2, inputTokens: 10, outputTokens: 4, costMicros: 22, unpriced: ['local/qwen'] },
  ],
  complete: true,
};

function printed(report: UsageBreakdown, output: 'text' | 'wide' | 'json'): string {
  let text = '';
  printBreakdown(report, output, { out: (more: string) => void (text += more) } as never);
  return text;
}

describe('the usage of agents, printed', () => {
  it('models without a price are said, and -o wide names them', () => {
    const text = printed(REPORT, 'text');
    assert.match(text, /^AGENT +CALLS +INPUT-TOKENS +OUTPUT-TOKENS +COST$/m);
    assert.match(text, /^lead +1,200 +30,000 +400 +\$1\.50$/m);
    assert.match(text, /^lead-one +2 +10 +4 +\$0\.0000\*$/m);
    assert.match(text, /^\* with models without a configured price: \$1 per million input tokens, \$3 output;/m);
    assert.match(printed(REPORT, 'wide'), /^lead-one .* local\/qwen$/m);
  });

  it('a report without rows and one with too many say so', () => {
    assert.equal(printed({ ...REPORT, rows: [] }, 'text'), 'No usage since 2026-05-01.\n');
    assert.match(printed({ ...REPORT, complete: false }, 'text'), /^Only the first 2 rows\.$/m);
  });

  it('JSON has one line per row', () => {
    const [first] = printed(REPORT, 'json').trim().split('\n');
    assert.deepEqual(JSON.parse(first ?? ''), { by: 'Agent', since: '2026-05-01', ...REPORT.rows[0] });
  });
});

describe('the options of usage in groups', () => {
  const parse = (...args: string[]) =>
    addBreakdownOptions(new Command().exitOverride().configureOutput({ writeErr: () => undefined }))
      .parse(args, { from: 'user' })
      .opts();

  it('groups have any case, and durations may be in days', () => {
    assert.deepEqual(parse('--by', 'root', '--since', '2d'), { by: 'Root', since: 172_800_000 });
    assert.deepEqual(parse('--by', 'Day', '--since', '12h'), { by: 'Day', since: 43_200_000 });
    assert.equal(parse().since, 604_800_000);
    for (const refused of [
      ['--by', 'colour'],
      ['--since', 'soon'],
      ['--since', '181d'],
      ['--since', '9000h'],
    ]) {
      assert.throws(
        () => parse(...refused),
        (error) => error instanceof InvalidArgumentError || error instanceof Error,
      );
    }
  });

  it('a report starts with the day at which its duration starts', () => {
    assert.equal(firstDay(86_400_000, new Date('2026-05-04T00:30:00Z')), '2026-05-03');
  });
});
