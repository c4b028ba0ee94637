import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { before, describe, it } from 'node:test';
import type { ApprovalRequest } from '../../../../src/api/v1alpha1/approvalrequest.ts';
import type { EmergentTool } from '../../../../src/api/v1alpha1/emergenttool.ts';
import type { SessionSummary, SessionToolSummary } from '../../../../src/gateway-api/user-api.ts';
import type { KubeObject } from '../../../../src/kube/informer/store.ts';
import { jsonLines } from '../../../support/json-lines.ts';
import { poll } from '../../../support/poll.ts';
import { type ClusterUser, createClusterUser } from '../../support/cluster-user.ts';
import { type CommandValues, readDocumentedCommands, type WordsOf } from '../../support/documented-page.ts';
import { asMcpClient } from '../../support/mcp-client.ts';
import { type CommandResult, type InstalledCluster, ROOT } from '../../support/installed-cluster.ts';

type Stored<T> = KubeObject & T;

const NAMESPACE = 'quickstart';
const TOOL = 'csv_rows';
const PAGE = join(ROOT, 'docs/quickstart.md');
/** The first start of a verifier pod on a busy node. */
const PROMOTION_TIMEOUT_MS = 180_000;
const REGION_QUESTION = "Which region's revenue fell most between the second quarter and the third, and by how much?";
const COLUMNS_QUESTION = 'Which columns has this export: region,quantity';
/** What a wider tier, an approval or a revocation needs until every pod has it, on a busy node. */
const EFFECT_TIMEOUT_MS = 60_000;

/**
 * The life of one tool after its forge, with the commands of the quick start: verified in another pod, approved by an ordinary user,
 * shared, called by a second agent, revoked. The agent `analyst` must have answered two questions in one session.
 */
export function toolLife(current: () => InstalledCluster): void {
  describe('the life of a tool', () => lifeTests(current));
}

function lifeTests(current: () => InstalledCluster): void {
  let wordsOf: WordsOf;
  let approver: ClusterUser;
  let session: string;
  let request: Stored<ApprovalRequest>;

  before(async () => {
    wordsOf = await readDocumentedCommands(PAGE);
    approver = await createClusterUser(current(), 'alice', {
      namespace: NAMESPACE,
      roles: ['temper-approver', 'temper-user'],
    });
    const sessions = await current().temper('sessions', 'analyst', '-n', NAMESPACE, '--output', 'json');
    ({ session } = JSON.parse(sessions.stdout) as SessionSummary);
  });

  /** Runs a command of the page as it stands there, with a value for each of its placeholders. */
  async function documented(command: string, values: CommandValues = {}): Promise<CommandResult> {
    const words = wordsOf(command, values);
    assert.deepEqual(words.slice(0, 2), ['kubectl', 'temper']);
    return approver.temper(...words.slice(2));
  }

  async function succeeds(command: string, values: CommandValues = {}): Promise<string> {
    const { code, stdout, stderr } = await documented(command, values);
    assert.equal(code, 0, `${command}: ${stdout}${stderr}`);
    return stdout;
  }

  async function list<T>(kind: string): Promise<Stored<T>[]> {
    const { items } = JSON.parse(await current().kubectl('get', kind, '-n', NAMESPACE, '-o', 'json')) as {
      items: Stored<T>[];
    };
    return items;
  }

  const toolOf = (tier: string, isRight: (tool: Stored<EmergentTool>) => boolean): Promise<Stored<EmergentTool>> =>
    poll(
      `a tool of tier ${tier}`,
      async () =>
        (await list<EmergentTool>('emergenttools')).find(
          (tool) => tool.spec.artifact.name === TOOL && tool.spec.tier === tier && isRight(tool),
        ),
      { timeoutMs: PROMOTION_TIMEOUT_MS },
    );

  const reasonOf = ({ status }: Stored<EmergentTool>): string | undefined =>
    status?.conditions?.find(({ type }) => type === 'Active')?.reason;

  /** Sends the question about columns to the agent in new sessions until the reply matches. */
  async function answerOf(agent: string, expected: RegExp): Promise<void> {
    await poll(
      `a reply of ${agent} that matches ${expected}`,
      async () => {
        const answered = await approver.temper('send', agent, COLUMNS_QUESTION, '--follow', '-n', NAMESPACE);
        assert.match(answered.stdout, expected, answered.stderr);
        return true;
      },
      { timeoutMs: EFFECT_TIMEOUT_MS },
    );
  }

  it('a tool with enough uses is verified in another pod, reviewed, and belongs to its agent from then on', async () => {
    await succeeds(`kubectl temper send analyst "${REGION_QUESTION}" --session SESSION --follow -n quickstart`, {
      SESSION: session,
    });
    const tool = await toolOf('Agent', ({ status }) => status?.active === true);
    assert.equal(reasonOf(tool), 'Verified');
    const described = await succeeds('kubectl temper describe tool csv_rows -n quickstart');
    assert.match(described, /csv_rows/);
  });

  it('a user rates the work of the agent, and sees its level explained', async () => {
    const rated = await succeeds('kubectl temper rate analyst SESSION 9 -n quickstart', { SESSION: session });
    assert.match(rated, /^message\/\S+ of analyst rated 9 of 10 in .*quickstart/);
    const explained = await succeeds('kubectl temper trust explain analyst -n quickstart');
    assert.match(explained, /restricted/);
  });

  it('the verified tool waits for an approver, and the request shows what a reviewer needs', async () => {
    request = await poll('a request for tier Shared', async () =>
      (await list<ApprovalRequest>('approvalrequests')).find(({ spec }) => spec.subject.promotion?.tool === TOOL),
    );
    const { name } = request.metadata;
    const listed = await succeeds('kubectl temper requests -n quickstart');
    assert.ok(listed.includes(name), listed);
    const shown = await succeeds('kubectl temper requests REQUEST -n quickstart', { REQUEST: name });
    for (const part of ['function execute(input)', 'Acme, Inc.', request.spec.subject.promotion?.digest ?? '']) {
      assert.ok(shown.includes(part), `${part} in ${shown}`);
    }
    await current().kubectl('apply', '-n', NAMESPACE, '-f', join(ROOT, 'manifests/sharing/reporter.yaml'));
    await current().waitFor('agent/reporter', 'Ready', NAMESPACE);
    await answerOf('reporter', /◂ reporter: No tool of mine reads this: /);
  });

  it('an Approval that an ordinary permitted user applies shares the tool with a second agent', async () => {
    const file = join(dirname(current().node.kubeconfig), 'approval.json');
    const { nonce, subject } = request.spec;
    const approvedBy = { username: approver.name };
    const approval = {
      apiVersion: 'temper.dev/v1alpha1',
      kind: 'Approval',
      metadata: { name: 'csv-rows-alice', namespace: NAMESPACE },
      spec: { decision: 'Approve', nonce, request: request.metadata.name, approvedBy, subject },
    };
    await writeFile(file, JSON.stringify(approval));
    await assert.rejects(
      current().kubectl('apply', '-f', file),
      /approvedBy/,
      'an Approval in the name of another user',
    );
    await approver.kubectl('apply', '-f', file);
    const shared = await toolOf('Shared', ({ status }) => status?.active === true);
    assert.equal(reasonOf(shared), 'Approved');
    assert.deepEqual(
      (await list<EmergentTool>('emergenttools'))
        .filter(({ spec, status }) => spec.digest === shared.spec.digest && status?.active === true)
        .map(({ spec }) => spec.tier),
      ['Shared'],
      'one object of the tool is in service',
    );
    await answerOf('reporter', /◂ reporter: The columns are region, quantity\./);
    const again = await documented(
      'kubectl temper approve REQUEST --reason "reads CSV and nothing else" -n quickstart',
      {
        REQUEST: request.metadata.name,
      },
    );
    assert.equal(again.code, 2, again.stdout);
    assert.match(again.stderr, /already decided: Approve by alice/);
  });

  it('a client of the MCP SDK outside the cluster calls the shared tool, and asks the second agent that uses it', async () => {
    const audience = ['--audience', 'temper-gateway'];
    const token = await approver.kubectl('create', 'token', 'temper-users', '-n', NAMESPACE, ...audience);
    const agent = { kubeconfig: approver.kubeconfig, namespace: NAMESPACE, agent: 'reporter', token: token.trim() };
    await asMcpClient(agent, async (client) => {
      const { tools } = await client.listTools();
      const names = tools.map(({ name }) => name);
      assert.ok(names[0] === 'ask_agent' && names.includes(TOOL), names.join(' '));
      const parsedRows = { columns: ['region', 'quantity'], rows: [{ region: 'West', quantity: '3' }] };
      const called = await client.callTool(
        { name: TOOL, arguments: { text: 'region,quantity\nWest,3' } },
        { timeout: 60_000 },
      );
      assert.deepEqual(called.structuredContent, parsedRows, JSON.stringify(called.content));
      const input = { text: COLUMNS_QUESTION, session: 'mcp-client' };
      const answered = await client.callTool({ name: 'ask_agent', arguments: input }, { timeout: 60_000 });
      const reply = 'The columns are region, quantity.';
      const expected = { reply, finishReason: 'complete', session: 'mcp-client' };
      assert.deepEqual(answered.structuredContent, expected, JSON.stringify(answered.content));
    });
    const traced = await approver.temper('trace', 'mcp-client', '--agent', 'reporter', '-n', NAMESPACE);
    assert.ok(traced.stdout.includes(TOOL), traced.stdout);
  });

  it('a revoked tool is gone for both agents', async () => {
    const revoked = await succeeds(
      'kubectl temper demote csv_rows --reason "drops lines without a header" -n quickstart',
    );
    assert.match(revoked, /^approval\/\S+-alice-revoke created in .*csv_rows leaves service in quickstart\n$/);
    for (const tier of ['Shared', 'Agent']) {
      assert.equal(reasonOf(await toolOf(tier, ({ status }) => status?.active === false)), 'Revoked');
    }
    await answerOf('reporter', /◂ reporter: No tool of mine reads this: /);
    await answerOf('analyst', /◂ analyst: No tool of mine reads this: /);
    const sameSession = ['send', 'analyst', COLUMNS_QUESTION, '--session', session, '--follow', '-n', NAMESPACE];
    const { stdout } = await approver.temper(...sameSession);
    assert.match(stdout, /◂ analyst: No tool of mine reads this: /);
    const tools = await approver.temper('top', 'tools', 'analyst', '-n', NAMESPACE, '--output', 'json');
    const left = jsonLines<SessionToolSummary>(tools.stdout).find(({ name }) => name === TOOL);
    assert.match(
      left?.outOfService ?? '',
      /^taken out of service by EmergentTool "csv-rows-\w+" \(Revoked\)/,
      tools.stdout,
    );
  });
}
