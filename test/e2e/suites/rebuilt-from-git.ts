import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { stringify } from 'yaml';
import type { ApprovalRequest } from '../../../src/api/v1alpha1/approvalrequest.ts';
import type { EmergentTool } from '../../../src/api/v1alpha1/emergenttool.ts';
import type { KubeObject } from '../../../src/kube/informer/store.ts';
import { chartReplayRules } from '../../support/chart-replay.ts';
import { GitOpsController } from '../../support/gitops/gitops-controller.ts';
import { poll } from '../../support/poll.ts';
import { CONNECTION, type GitHost, TREE } from '../support/git-host.ts';
import { type InstalledCluster, ROOT } from '../support/installed-cluster.ts';

type Stored<T> = KubeObject & T;

export const NAMESPACE = 'quickstart';
/** The quick start promotes it to tier Agent; no approver has decided about tier Shared. */
const TOOL = 'sum_paid_orders';
const QUESTION = 'How many orders of this table were paid?';
const ORDERS = [
  { region: 'north', quantity: '2', unit_price: '1.50', status: 'paid' },
  { region: 'south', quantity: '1', unit_price: '4.00', status: 'open' },
];
const ANSWER = /◂ reporter: The table has 1 paid orders\./;
const NO_TOOL = /◂ reporter: No tool of mine counts this: /;
/** A gateway looks every 15 seconds, and two of them share the work. */
const PULL_REQUEST_TIMEOUT_MS = 90_000;

/** The replay script of the chart, in which an agent also answers the question about a table with the tool. */
export async function replayScript(): Promise<string> {
  const when = { lastUser: QUESTION };
  const toolCalls = [{ id: 'sum', name: TOOL, arguments: { rows: ORDERS } }];
  const rules = [
    { name: 'count the orders', when: { ...when, turn: 1 }, answer: { toolCalls } },
    {
      name: 'say the number',
      when: { ...when, turn: 2, lastTool: { isError: false } },
      answer: { text: 'The table has {{toolCall.sum.orders}} paid orders.' },
    },
    {
      name: 'no tool counts',
      when: { ...when, turn: 2, lastTool: { isError: true } },
      answer: { text: 'No tool of mine counts this: {{lastTool}}' },
    },
  ];
  return stringify({ rules: [...rules, ...(await chartReplayRules())] }, { aliasDuplicateObjects: false });
}

/**
 * A tool that is shared by a merge, and that a cluster without any data has again from Git alone. The quick start has run: the request for
 * the tool waits for an approver. `rebuild` throws the cluster away and installs the chart on an empty one.
 */
export function rebuiltFromGit(
  current: () => InstalledCluster,
  { host, rebuild }: { host: () => GitHost; rebuild: () => Promise<void> },
): void {
  describe('a tool that is shared through Git', () => {
    let controller: GitOpsController;
    let nonce: string;

    before(async () => {
      controller = await GitOpsController.open();
    });
    after(() => controller?.[Symbol.asyncDispose]());

    const patch = (object: string, spec: object) =>
      current().kubectl('patch', object, '-n', NAMESPACE, '--type=merge', '-p', JSON.stringify({ spec }));

    const sharedWith = async (reason: string): Promise<Stored<EmergentTool> | undefined> => {
      const all = JSON.parse(await current().kubectl('get', 'emergenttools', '-n', NAMESPACE, '-o', 'json')) as {
        items: Stored<EmergentTool>[];
      };
      return all.items
        .filter(({ spec }) => spec.tier === 'Shared' && spec.artifact.name === TOOL)
        .find(({ status }) => status?.conditions?.some((one) => one.type === 'Active' && one.reason === reason));
    };
    const syncUntil = (reason: string) =>
      controller.applyUntil(current().node.kubeconfig, `the Shared tool with reason ${reason}`, () =>
        sharedWith(reason),
      );

    /** The policy names the connection, and the agent `reporter` may call the tool. */
    async function configure(): Promise<void> {
      const gitOps = { connection: CONNECTION, branch: 'main', path: TREE };
      await patch('trustpolicy/quickstart', { promotion: { toShared: { gitOps } } });
      await patch('agent/reporter', { grants: { tools: ['csv_*', 'sum_*'] } });
    }

    async function merge(branch: string): Promise<void> {
      const [pull, ...others] = await poll(
        `the pull request of ${branch}`,
        async () => {
          const found = await host().repository.pulls(branch);
          return found.length > 0 && found;
        },
        { timeoutMs: PULL_REQUEST_TIMEOUT_MS },
      );
      assert.ok(pull !== undefined && others.length === 0);
      await host().repository.merge(pull.number);
      await controller.pull(host().repository, TREE);
    }

    /** Asks the agent `reporter` in new sessions until the reply matches: pods list their tools at the next message. */
    const answerOf = (expected: RegExp) =>
      poll(
        `a reply that matches ${expected}`,
        async () => {
          const { stdout, stderr } = await current().temper('send', 'reporter', QUESTION, '--follow', '-n', NAMESPACE);
          assert.match(stdout, expected, stderr);
          return true;
        },
        { timeoutMs: 60_000 },
      );

    it('a user merges the pull request of the gateway, and a second agent calls the tool', async () => {
      await configure();
      const requests = JSON.parse(
        await current().kubectl('get', 'approvalrequests', '-n', NAMESPACE, '-o', 'json'),
      ) as { items: Stored<ApprovalRequest>[] };
      const request = requests.items.find(({ spec }) => spec.subject.promotion?.tool === TOOL);
      assert.ok(request !== undefined, JSON.stringify(requests.items.map(({ spec }) => spec.summary)));
      ({ nonce } = request.spec);
      await merge(`temper/share-${nonce}`);
      const files = await host().repository.filesBelow(TREE);
      const page = Object.entries(files).find(([path]) => path.endsWith('/review.md'))?.[1] ?? '';
      for (const part of ['function execute(input)', 'Reviewer of safety', 'gave the same result'])
        assert.ok(page.includes(part), `${part} in ${page}`);
      await syncUntil('Approved');
      await answerOf(ANSWER);
    });

    it('a cluster that was thrown away has the tool again from Git alone, and a pod calls it', async () => {
      await rebuild();
      await current().kubectl('apply', '-k', join(ROOT, 'manifests/quickstart'));
      await current().kubectl('apply', '-n', NAMESPACE, '-f', join(ROOT, 'manifests/sharing/reporter.yaml'));
      await configure();
      const { spec } = await syncUntil('Approved');
      assert.equal(spec.requestNonce, nonce);
      assert.equal(await controller.diff(current().node.kubeconfig), '');
      await current().waitFor('agent/reporter', 'Ready', NAMESPACE);
      await answerOf(ANSWER);
    });

    it('a revocation reaches Git, and another sync does not bring the tool back', async () => {
      const { code, stderr } = await current().temper('demote', TOOL, '--reason', 'wrong unit', '-n', NAMESPACE);
      assert.equal(code, 0, stderr);
      const { metadata } = await poll('the revoked tool', () => sharedWith('Revoked'));
      await merge(`temper/revoke-${nonce}`);
      await current().kubectl('delete', 'emergenttool', metadata.name, '-n', NAMESPACE);
      const { status } = await syncUntil('Revoked');
      assert.equal(status?.active, false);
      await answerOf(NO_TOOL);
    });
  });
}
