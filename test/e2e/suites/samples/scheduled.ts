import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { SampleSetup } from './sample-setup.ts';

/** The sample with a schedule. */
export function scheduled(setup: () => SampleSetup): void {
  it('a user starts a run of a schedule now, and the agent writes its report', async () => {
    await using _sample = await setup().start('scheduled', 'daily-report');
    const listed = await setup().run('kubectl temper schedule list daily-report -n quickstart');
    assert.match(listed, /daily-report +\(spec\) +0 9 \* \* 1-5 +Europe\/Berlin/);
    const started = await setup().run('kubectl temper schedule trigger daily-report -n quickstart');
    const [, session = ''] = /session ([^;]+);/.exec(started) ?? [];
    const [reply] = await setup().repliesOf('daily-report', session);
    assert.equal(reply, 'There are 6 exports, the latest is data/orders-2026-09.csv.');
    const trace = 'kubectl temper trace SESSION --agent daily-report -n quickstart';
    const shown = await setup().run(trace, { SESSION: session });
    assert.match(shown, /file_list[^]*◂ daily-report: There are 6 exports, the latest is/);
  });
}
