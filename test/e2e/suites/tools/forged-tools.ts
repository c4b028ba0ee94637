import { after, before, describe } from 'node:test';
import { deleteAgents } from '../../support/fixture.ts';
import { type ForgedTools, FORGING_NAMESPACE, openForgedTools } from '../../support/forged-tools-setup.ts';
import type { InstalledCluster } from '../../support/installed-cluster.ts';
import { guardedCalls } from './guarded-calls.ts';
import { lyingAgent, tellLies } from './lying-agent.ts';
import { forgeAndUse, workedForges } from './worked-forges.ts';

/** Tools of several agents at once: an honest agent forges, a second one calls what it shares, a third one lies, a fourth one is guarded. */
export function forgedTools(cluster: () => InstalledCluster): void {
  describe('forged tools of several agents', () => {
    let setup: ForgedTools;

    before(async () => {
      setup = await openForgedTools(cluster());
      // The lying agent works while the tools of the honest agent rise.
      await tellLies(setup);
      await forgeAndUse(setup);
    });

    after(() => deleteAgents(cluster(), FORGING_NAMESPACE));

    const current = () => setup;
    guardedCalls(current);
    workedForges(current);
    lyingAgent(current);
  });
}
