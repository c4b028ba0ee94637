import { before, describe } from 'node:test';
import type { InstalledCluster } from '../../support/installed-cluster.ts';
import { approvals } from './approvals.ts';
import { autonomous } from './autonomous.ts';
import { outside } from './outside.ts';
import { questions } from './questions.ts';
import { SampleSetup } from './sample-setup.ts';
import { scheduled } from './scheduled.ts';
import { skills } from './skills.ts';

/** Each sample is started by its documented command, and shows its effect. The cluster has the quick start, with webhooks. */
export function samples(current: () => InstalledCluster): void {
  describe('the samples', () => {
    let setup: SampleSetup;
    before(async () => {
      setup = await SampleSetup.open(current());
    });

    const byItself = autonomous(() => setup);
    byItself.starts();
    questions(() => setup);
    skills(() => setup);
    approvals(() => setup);
    outside(() => setup);
    scheduled(() => setup);
    byItself.hasRun();
  });
}
