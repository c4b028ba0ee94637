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
  REFUSED_CALLS,
  refusedCalls,
} from '../../support/internet/building-script.ts';
import type { Internet } from '../../support/internet/internet.ts';
import { stepsIn } from '../../support/internet/scripted-steps.ts';
import { endsOf, sendAll } from '../../support/user-session.ts';
import { waitingRequests } from '../../support/waiting-requests.ts';
import { createClusterUser } from '../../support/cluster-user.ts';
import { FORGED_URLS } from '../../../support/egress/forged-urls.ts';
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

    it('no form of a URL makes its tools reach anything else', async (context) => {
      const before = (await internet().lines()).length;
      const refused: Record<string, number> = {};
      for (const [part, calls] of REFUSED_CALLS.entries()) {
        const outcomes = (await agents.sendAndWait(BUILDER, refusedCalls(part))).split('\n');
        assert.equal(outcomes.length, calls.length, outcomes.join('\n'));
        for (const [index, [tool, { url }]] of calls.entries()) {
          // The policy refuses the text of a URL; an address and a redirect, what connects.
          const code = FORGED_URLS.includes(url) ? /TEMPER_(?:POLICY|FETCH)_DENIED/ : /TEMPER_FETCH_DENIED/;
          assert.match(outcomes[index] ?? '', code, `${tool} ${url}`);
          refused[tool] = (refused[tool] ?? 0) + 1;
        }
      }
      context.diagnostic(`URLs that are refused: ${JSON.stringify(refused)}`);
      for (const line of (await internet().lines()).slice(before)) {
        if (line.event === 'query') assert.match(line.name, /^[a-z0-9-]+\.example\.com$/);
        else assert.equal(line.event === 'request' ? line.host : undefined, 'moved.example.com', JSON.stringify(line));
      }
      for (const tool of ['web_fetch', 'git_clone']) assert.ok((refused[tool] ?? 0) >= 60, tool);
    });
  });
}
