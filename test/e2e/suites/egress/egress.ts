import { after, before, describe } from 'node:test';
import { deleteAgents } from '../../support/fixture.ts';
import type { InstalledCluster } from '../../support/installed-cluster.ts';
import type { Internet } from '../../support/internet/internet.ts';
import { type EgressSetup, NAMESPACE, openEgressSetup } from './egress-setup.ts';
import { endedConnections } from './ended-connections.ts';
import { reachedHosts } from './reached-hosts.ts';

/** What agents reach on the internet, with an internet that exists in the network namespace of the node only. */
export function egress(cluster: () => InstalledCluster, internet: () => Internet): void {
  describe('connections of agents to the internet', () => {
    let setup: EgressSetup;

    before(async () => {
      setup = await openEgressSetup(cluster(), internet());
    });

    after(() => deleteAgents(cluster(), NAMESPACE));

    const current = () => setup;
    reachedHosts(current);
    endedConnections(current);
  });
}
