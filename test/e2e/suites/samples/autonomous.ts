import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';
import { poll } from '../../../support/poll.ts';
import { NAMESPACE, type SampleSetup } from './sample-setup.ts';

const ZONE = 'Europe/Berlin';
/** The interval of the agent is a minute. */
const RUN_TIMEOUT_MS = 150_000;

/** The sample that works by itself. The first run is due within a minute of `starts`; other tests can run before `hasRun`. */
export function autonomous(setup: () => SampleSetup): { starts: () => void; hasRun: () => void } {
  let sample: AsyncDisposable;

  const starts = (): void => {
    before(async () => {
      sample = await setup().start('autonomous');
    });
    after(() => sample?.[Symbol.asyncDispose]());

    it('the next run of an autonomous agent lies outside of its quiet hours', async () => {
      const path = '-o=jsonpath={.status.schedule.nextScheduleTime}';
      const next = await poll('the time of the next run', async () => {
        const time = await setup().cluster.kubectl('get', 'agent', 'export-watch', '-n', NAMESPACE, path);
        return time !== '' && new Date(time);
      });
      const format = new Intl.DateTimeFormat('en-GB', { timeZone: ZONE, hour: '2-digit', hourCycle: 'h23' });
      const hour = Number(format.format(next));
      assert.ok(hour >= 6 && hour < 22, `${next.toISOString()} is in hour ${hour}`);
      // From here on a run is due at any time of the day.
      await setup().agents.patchSpec('export-watch', { schedule: { quietHours: null } });
    });
  };

  const hasRun = (): void => {
    it('an autonomous agent runs by itself, and remembers what it saw', async () => {
      const first = await poll(
        'a run of export-watch',
        async () => (await setup().agents.sessions('export-watch')).at(-1),
        { timeoutMs: RUN_TIMEOUT_MS, intervalMs: 1_000 },
      );
      assert.match(first.session, /^schedule-\d{8}T\d{6}Z$/);
      const replies = await setup().repliesOf('export-watch', first.session);
      assert.deepEqual(replies, ['There are 6 exports. I remember it for the next run.']);
      const paused = await setup().run(
        'kubectl temper schedule pause export-watch --reason "the exports are being moved" -n quickstart',
      );
      assert.match(paused, /the schedule of agent\/export-watch paused/);
    });
  };

  return { starts, hasRun };
}
