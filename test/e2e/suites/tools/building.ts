import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { agentObject, NamespaceAgents, namespaceObject, policyObject } from '../../support/fixture.ts';
import type { InstalledCluster } from '../../support/installed-cluster.ts';
import { REPOSITORY_TOKEN } from '../../support/internet/addresses.ts';
import {
  BUILD,
  PUSH,
  PUSHED_BRANCH,
  REFUSED_CLONES,
  refusedClones,
  stepsIn,
} from '../../support/internet/building-script.ts';
import type { Internet } from '../../support/internet/internet.ts';

const NAMESPACE = 'building';
const TOOLS = ['git_*', 'file_write', 'shell_exec', 'code_run', 'web_fetch'];

/** An agent of a sandbox class with programs works on a repository of the internet of the tests. */
export function building(cluster: () => InstalledCluster, internet: () => Internet): void {
  describe('an agent with programs', () => {
    let agents: NamespaceAgents;

    before(async () => {
      agents = new NamespaceAgents(cluster(), NAMESPACE);
      await cluster().apply(namespaceObject(NAMESPACE));
      await cluster().apply(
        policyObject(NAMESPACE, {
          level: { initial: 'standard', ceiling: 'standard' },
          autonomy: 'Full',
          egress: { allow: ['*.example.com'] },
          tainted: { tools: TOOLS },
          // Each call after the clone would need an approval.
          privateData: { sources: [] },
        }),
        agentObject(NAMESPACE, 'builder', {
          sandbox: { class: 'toolchain' },
          grants: {
            tools: TOOLS,
            network: ['*.example.com'],
            shell: ['wc -l *'],
          },
        }),
      );
      await agents.waitForReason('builder', 'Running', 'Ready', 120_000);
    });

    after(async () => {
      // The node has place for the agents of the other suites only.
      await cluster().kubectl('delete', 'agents', '--all', '-n', NAMESPACE, '--wait=false');
    });

    it('it clones through the proxy, runs a program, commits, fetches, computes and reads a page', async () => {
      const head = await internet().repository.git('rev-parse', 'main');
      const steps = stepsIn(await agents.sendAndWait('builder', BUILD));
      assert.match(steps['cloned'] ?? '', new RegExp(`"commit":"${head}"`));
      assert.match(steps['counted'] ?? '', /"exitCode":0,.*"stdout":"3 lines\.txt\\n"/);
      assert.match(steps['refused'] ?? '', /TEMPER_POLICY_DENIED/);
      assert.match(steps['committed'] ?? '', /Add three lines/);
      assert.match(steps['fetched'] ?? '', /"branch":"origin\/main".*"objects":0/);
      assert.match(steps['logged'] ?? '', /builder.*Add three lines/s);
      assert.match(steps['computed'] ?? '', /"value":6/);
      assert.match(steps['read'] ?? '', /"status":200.*"text":"ok"/);
    });

    it('it pushes to a repository of a connection, only to permitted branches, and its pod has no credential', async () => {
      const { privateRepository } = internet();
      const main = await privateRepository.git('rev-parse', 'main');
      const steps = stepsIn(await agents.sendAndWait('builder', PUSH));
      const [, commit = ''] = /"commit":"([0-9a-f]{40})"/.exec(steps['prepared'] ?? '') ?? [];
      assert.match(steps['pushed'] ?? '', new RegExp(`"commit":"${commit}".*"objects":3`), JSON.stringify(steps));
      assert.match(steps['repeated'] ?? '', /"objects":0/);
      for (const step of ['refused', 'foreign']) assert.match(steps[step] ?? '', /TEMPER_CONNECTION_DENIED/, step);
      assert.equal(await privateRepository.git('rev-parse', PUSHED_BRANCH), commit);
      assert.equal(await privateRepository.git('show', `${PUSHED_BRANCH}:added.txt`), 'added');
      assert.equal(await privateRepository.git('rev-parse', 'main'), main);
      assert.equal(await internet().repository.git('branch', '--list', PUSHED_BRANCH), '');
      const pod = await agents.boundPod('builder');
      const logs = await cluster().kubectl('logs', pod.metadata.name, '-n', NAMESPACE, '--all-containers');
      assert.ok(!`${JSON.stringify(steps)}${JSON.stringify(pod)}${logs}`.includes(REPOSITORY_TOKEN));
    });

    it('no form of a URL makes it reach anything else', async (context) => {
      const before = (await internet().lines()).length;
      let refused = 0;
      for (const [part, urls] of REFUSED_CLONES.entries()) {
        const reply = await agents.sendAndWait('builder', refusedClones(part));
        const outcomes = reply.split('\n');
        assert.equal(outcomes.length, urls.length, reply);
        for (const [index, outcome] of outcomes.entries())
          assert.match(outcome, /TEMPER_FETCH_DENIED/, `${urls[index]}`);
        refused += outcomes.length;
      }
      context.diagnostic(`${refused} URLs are refused`);
      for (const line of (await internet().lines()).slice(before))
        assert.notEqual(line.event, 'connection', JSON.stringify(line));
      assert.ok(refused >= 60);
    });
  });
}
