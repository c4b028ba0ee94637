import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ApprovalRequest } from '../../../../src/api/v1alpha1/approvalrequest.ts';
import type { EmergentTool } from '../../../../src/api/v1alpha1/emergenttool.ts';
import type { KubeObject } from '../../../../src/kube/informer/store.ts';
import { pollValue } from '../../../support/poll.ts';
import { RISING } from '../../support/forging-script.ts';
import { endsOf, sendAll } from '../../support/user-session.ts';
import type { ToolAuditReport } from '../../../../src/tool-audit/report.ts';
import { jsonLines } from '../../../support/json-lines.ts';
import type { ForgedTools } from '../../support/forged-tools-setup.ts';

type Stored<T> = KubeObject & T;

const ofSmith = (requests: readonly Stored<ApprovalRequest>[]): Stored<ApprovalRequest>[] =>
  requests.filter(({ spec }) => spec.agent.name === 'smith');

/** Five verifications, with two pods at a time, on a busy node. */
const PROMOTION_TIMEOUT_MS = 240_000;
const USES = [1, 2, 3, 4, 5];
const FORGES = ['forge the tools', 'forge the nested tool'];

/** Sends all messages of the forging agent; it works on them while the tests begin. */
export async function forgeAndUse({ sessionOf }: ForgedTools): Promise<void> {
  await sendAll(sessionOf('smith', 'forges'), [...FORGES, ...USES.map((number) => `use ${number}`)]);
  await sendAll(sessionOf('smith', 'fetches'), ['forge the fetching tool', ...USES.map((number) => `fetch ${number}`)]);
}

/** The six worked forges: forged by a pod, used, verified in verifier pods, approved, called by another agent. */
export function workedForges(current: () => ForgedTools): void {
  const list = async <T>(kind: string): Promise<Stored<T>[]> => {
    const { cluster, agents } = current();
    const printed = await cluster.kubectl('get', kind, '-n', agents.namespace, '-o', 'json');
    return (JSON.parse(printed) as { items: Stored<T>[] }).items;
  };
  /** The worked forges in service at the tier. */
  const inService = async (tier: string): Promise<string[]> =>
    (await list<EmergentTool>('emergenttools'))
      .filter(({ spec, status }) => spec.tier === tier && status?.active === true)
      .map(({ spec }) => spec.artifact.name)
      .filter((name) => RISING.includes(name))
      .sort();
  const allInService = (tier: string): Promise<string[]> =>
    pollValue(
      `${RISING.length} tools of tier ${tier}`,
      () => inService(tier),
      ({ length }) => length === RISING.length,
      { timeoutMs: PROMOTION_TIMEOUT_MS },
    );

  describe('the worked forges', () => {
    it('an agent forges them, uses them over five messages, and calls a chain that calls a chain', async () => {
      const [forged, nested, ...uses] = await endsOf(current().sessionOf('smith', 'forges'), 2 + USES.length);
      assert.match(forged ?? '', /"tool":"slugify".*"tier":"Session"/);
      assert.equal(nested, '{"slug":"a-text-about-about-nested-calls"}');
      for (const use of uses) assert.doesNotMatch(use, /error/, uses.join('\n'));
    });

    it('verifier pods repeat and examine them, and they rise to tier Agent', async () => {
      assert.deepEqual(await allInService('Agent'), RISING);
      const chain = (await list<EmergentTool>('emergenttools')).find(
        ({ spec }) => spec.artifact.name === 'research_and_summarize',
      );
      const condition = chain?.status?.conditions?.find(({ type }) => type === 'Active');
      assert.match(condition?.message ?? '', /recorded answers: \d+ observed, 0 reported by the pod/);
      const { stdout } = await current().agents.temper('audit', 'show', 'slugify', '--output', 'json');
      const actions = jsonLines<{ action: string; text: string }>(stdout);
      const examined = actions.find(({ action }) => action === 'tool.examined');
      assert.match(examined?.text ?? '', /^Agent, [1-9]\d+ inputs, [1-9]\d\d cases of checks, 0 refusing/, stdout);
    });

    it('an approver shares them, and verifier pods run their tests again', async () => {
      const requests = await pollValue(
        'requests for tier Shared',
        () => list<ApprovalRequest>('approvalrequests'),
        (all) => ofSmith(all).length === RISING.length,
      );
      const decided = await Promise.all(
        ofSmith(requests).map(({ metadata }) =>
          current().approver.temper('approve', metadata.name, '--reason', 'read', '-n', current().agents.namespace),
        ),
      );
      for (const { code, stderr } of decided) assert.equal(code, 0, stderr);
      assert.deepEqual(await allInService('Shared'), RISING);
    });

    it('another agent calls all of them in one answer, also two calls with one ID', async () => {
      const session = current().sessionOf('caller', `calls-${Date.now()}`);
      await sendAll(session, ['call what is shared']);
      const [reply = ''] = await endsOf(session, 1);
      const outputs = reply.split('\n').map((line) => line.split(/=(.*)/).slice(0, 2));
      const report = 'a text about As a report:\na text about Trends for today:\nnull';
      const summary = 'a text about About "a":\n[]';
      assert.deepEqual(
        Object.fromEntries(outputs.map(([name, output = '']) => [name, JSON.parse(output) as unknown])),
        {
          convert_temperature: { result: 33.8 },
          fetch_analyze_report: { text: report, output: report },
          parse_csv: { headers: ['name', 'age'], rows: [{ name: 'Ada', age: '1' }] },
          research_and_summarize: { text: summary, output: summary },
          slugify: { slug: 'one-two' },
          call_0: { slug: 'the-first' },
          call_0_2: { slug: 'the-second' },
        },
      );
    });

    it('a user compares tasks with a shared tool and without it, by fresh agents in a verifier pod', async () => {
      const { agents, cluster } = current();
      const task = ['--agent', 'caller', '-m', 'call what is shared', '--output', 'json'];
      const { code, stdout, stderr } = await agents.temper('tool', 'audit', 'slugify', ...task);
      assert.equal(code, 0, stderr);
      assert.match(stderr, /session 2 of 2: task 1 without the tool/);
      const [report] = jsonLines<ToolAuditReport>(stdout);
      const [compared] = report?.tasks ?? [];
      assert.deepEqual([report?.evidence, report?.agent, report?.tasks.length], ['Compared', 'caller', 1]);
      assert.deepEqual([compared?.withTool.outcome, compared?.withoutTool.uses], ['complete', 0], stdout);
      assert.ok((compared?.withTool.uses ?? 0) >= 3, stdout);
      const shared = await pollValue(
        'the audit in the status of the Shared tool',
        async () =>
          (await list<EmergentTool>('emergenttools')).find(
            ({ spec, status }) =>
              spec.tier === 'Shared' && spec.artifact.name === 'slugify' && status?.audit !== undefined,
          ),
        (found) => found !== undefined,
      );
      assert.equal(shared?.status?.audit?.evidence, 'Compared');
      const printed = await cluster.kubectl('get', 'agent', 'caller', '-n', agents.namespace, '-o', 'json');
      assert.equal((JSON.parse(printed) as { status: { deactivatedTools?: [] } }).status.deactivatedTools, undefined);
    });

    it('the one that fetches reaches its host through the egress proxy', async () => {
      const [, ...uses] = await endsOf(current().sessionOf('smith', 'fetches'), 1 + USES.length);
      for (const use of uses) assert.deepEqual(JSON.parse(use), { status: 200, ok: true, redirected: false });
    });
  });
}
