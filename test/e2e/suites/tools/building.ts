import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { agentObject, deleteAgents, NamespaceAgents, policyObject } from '../../support/fixture.ts';
import type { InstalledCluster } from '../../support/installed-cluster.ts';
import { REPOSITORY_TOKEN } from '../../support/internet/addresses.ts';
import {
  BUILD,
  BUILDER,
  PROPOSE,
  PROPOSED_BRANCH,
  PUSH,
  PUSHED_BRANCH,
  REFUSED_CLONES,
  refusedClones,
} from '../../support/internet/building-script.ts';
import type { Internet } from '../../support/internet/internet.ts';
import { stepsIn } from '../../support/internet/scripted-steps.ts';
import { endsOf, sendAll } from '../../support/user-session.ts';
import { waitingRequests } from '../../support/waiting-requests.ts';
import { createClusterUser } from '../../support/cluster-user.ts';
import { pollValue } from '../../../support/poll.ts';

const NAMESPACE = 'building';
const TOOLS = ['git_*', 'file_write', 'shell_exec', 'code_run', 'web_fetch'];

/** An agent of a sandbox class with programs works on a repository of the internet of the tests. */
export function building(cluster: () => InstalledCluster, internet: () => Internet): void {
  describe('an agent with programs', () => {
    let agents: NamespaceAgents;

    before(async () => {
      agents = new NamespaceAgents(cluster(), NAMESPACE);
      const objects = [
        policyObject(NAMESPACE, {
          level: { initial: 'standard', ceiling: 'standard' },
          autonomy: 'Full',
          egress: { allow: ['*.example.com'] },
          tainted: { tools: TOOLS },
          // Each call after the clone would need an approval.
          privateData: { sources: [] },
        }),
        agentObject(NAMESPACE, BUILDER, {
          sandbox: { class: 'toolchain' },
          grants: {
            tools: TOOLS,
            network: ['*.example.com'],
            shell: ['wc -l *'],
          },
        }),
      ];
      await agents.start(objects, [BUILDER]);
    });

    after(() => deleteAgents(cluster(), NAMESPACE));

    it('it clones through the proxy, runs a program, commits, fetches, computes and reads a page', async () => {
      const head = await internet().repository.git('rev-parse', 'main');
      const steps = stepsIn(await agents.sendAndWait(BUILDER, BUILD));
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
      const steps = stepsIn(await agents.sendAndWait(BUILDER, PUSH));
      const [, commit = ''] = /"commit":"([0-9a-f]{40})"/.exec(steps['prepared'] ?? '') ?? [];
      assert.match(steps['pushed'] ?? '', new RegExp(`"commit":"${commit}".*"objects":3`), JSON.stringify(steps));
      assert.match(steps['repeated'] ?? '', /"objects":0/);
      for (const step of ['refused', 'foreign']) assert.match(steps[step] ?? '', /TEMPER_CONNECTION_DENIED/, step);
      assert.equal(await privateRepository.git('rev-parse', PUSHED_BRANCH), commit);
      assert.equal(await privateRepository.git('show', `${PUSHED_BRANCH}:added.txt`), 'added');
      assert.equal(await privateRepository.git('rev-parse', 'main'), main);
      assert.equal(await internet().repository.git('branch', '--list', PUSHED_BRANCH), '');
      const pod = await agents.boundPod(BUILDER);
      const logs = await cluster().kubectl('logs', pod.metadata.name, '-n', NAMESPACE, '--all-containers');
      assert.ok(!`${JSON.stringify(steps)}${JSON.stringify(pod)}${logs}`.includes(REPOSITORY_TOKEN));
    });

    it('a push and a pull request that need an approval wait for a user, and are made once', async (context) => {
      context.after(() => agents.patchPolicySpec({ rules: null }));
      await agents.patchPolicySpec({ rules: { requireApproval: ['vcs:push'] } });
      const approver = await createClusterUser(cluster(), 'grace', {
        namespace: NAMESPACE,
        roles: ['temper-approver', 'temper-user'],
      });
      const { kubeconfig } = cluster().node;
      const session = { kubeconfig, namespace: NAMESPACE, agent: BUILDER, session: 'proposal' };
      await sendAll(session, [PROPOSE]);
      for (const tool of ['git_push', 'git_pull_request']) {
        const [request = ''] = await pollValue(
          `a request for ${tool}`,
          () => waitingRequests(cluster(), { namespace: NAMESPACE, agent: BUILDER, tool }),
          ({ length }) => length === 1,
        );
        const branch = await internet().privateRepository.git('branch', '--list', PROPOSED_BRANCH);
        assert.equal(branch === '', tool === 'git_push', 'nothing is pushed before the approval');
        const { code, stderr } = await approver.temper('approve', request, '--reason', 'looked', '-n', NAMESPACE);
        assert.equal(code, 0, stderr);
      }
      const [reply = ''] = await endsOf(session, 1);
      const steps = stepsIn(reply);
      assert.match(steps['sent'] ?? '', /"objects":3/, reply);
      assert.match(
        steps['requested'] ?? '',
        /"number":1,"page":"https:\/\/git\.example\.com\/.*"state":"Open","isNew":true/,
        reply,
      );
      assert.equal(await internet().privateRepository.git('show', `${PROPOSED_BRANCH}:proposed.txt`), 'proposed');
    });

    it('no form of a URL makes it reach anything else', async (context) => {
      const before = (await internet().lines()).length;
      let refused = 0;
      for (const [part, urls] of REFUSED_CLONES.entries()) {
        const reply = await agents.sendAndWait(BUILDER, refusedClones(part));
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
