import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parseKnownHead } from '../../../src/audit/known-head.ts';
import { openAudit } from '../../../src/audit/recorded-trail.ts';
import { type GitConnection, gitConnectionFor, parseConnections } from '../../../src/connections/connection.ts';
import type { Digest } from '../../../src/lib/canonical.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { fileRecordStore } from '../../../src/lib/file-record-store.ts';
import { gitOpsFiles } from '../../../src/review/gitops/gitops-files.ts';
import { proposalOf, pullRequestDraft } from '../../../src/review/pull-requests/draft.ts';
import { hostedRepository, openPullRequest } from '../../../src/review/pull-requests/open-pull-request.ts';
import type {
  NumberedPullRequest,
  PullRequestDraft,
  PullRequestServer,
} from '../../../src/review/pull-requests/port.ts';
import { recordRevocation } from '../../../src/review/pull-requests/record-revocation.ts';
import { pullRequestServer } from '../../../src/review/pull-requests/servers.ts';
import { AUDIT_HEAD, aReview, aReviewedArtifact } from '../../../src/review/reviews.testing.ts';
import type { ToolReview } from '../../../src/review/tool-review.ts';
import { openRegistry } from '../../../src/tempering/registry/registry.ts';
import { artifactDigest } from '../../../src/tempering/registry/serialization.ts';
import { sharedObjectName } from '../../../src/review/gitops/review-of-objects.ts';
import { createPromotionStates } from '../../../src/nats/promotion/promotion-states.ts';
import type { PromotionRecord } from '../../../src/tempering/promotion/promotion-record.ts';
import { createPullRequestStore } from '../../../src/nats/pull-requests.ts';
import { GatewayFixture } from '../../support/gateway/gateway-fixture.ts';
import { aCaller, anAcceptance } from '../../../src/tempering/tempering.testing.ts';
import { type Gitea, startGitea } from '../../cluster/gitea.ts';
import { GiteaRepository } from '../../support/gitops/gitea-repository.ts';
import { pollAssertion, pollValue } from '../../support/poll.ts';
import { NEVER_ABORTED } from '../../support/stubs.ts';
import { pendingRequest } from './pending-request.ts';
import { testPlainRemote } from './plain-remote.ts';
import { testRebuiltCluster } from './rebuilt-cluster.ts';

const TEMPER = fileURLToPath(new URL('../../../bin/temper', import.meta.url));
const PLACE = { branch: 'main', path: '/clusters/tools/' };
const HOSTILE =
  'ZQX `ZQX` </code><img src=x onerror=ZQX> [ZQX](https://example.com) @owner #1\n\n# ZQX\n\n````\n~~~\n- ZQX';

const op = () => ({ signal: NEVER_ABORTED, deadline: systemClock.monotonic() + 60_000, key: 'test' });

function hostedServer(connection: GitConnection): PullRequestServer {
  const { git } = connection;
  assert.ok(git.type !== 'Git');
  return pullRequestServer({ ...connection, git }, { clock: systemClock });
}

/** A review with a nonce of its own, and so with a branch of its own. */
function reviewOf(nonce: string, changes: Partial<ToolReview> = {}): ToolReview {
  const review = aReview(changes);
  return { ...review, promotion: { ...review.promotion, nonce: `${nonce}-0123456789abcdef` } };
}

/** A decided promotion, as the operator keeps it in NATS. */
function aPromotion(agentUid: string, tool: string, digest: Digest): PromotionRecord {
  const verdict = { approved: true, confidence: 0.9, reasoning: 'sums', promptDigest: digest, citedLines: [3] };
  return {
    agent: { namespace: 'team-a', name: 'analyst', uid: agentUid },
    tool,
    digest,
    session: 's-1',
    attempt: 'a-1',
    since: new Date().toISOString(),
    state: 'Promoted',
    note: 'all succeeded',
    concluded: true,
    figures: {
      tests: 2,
      failedTests: 0,
      reruns: 5,
      successes: 5,
      distinctInputs: 5,
      observedAnswers: 0,
      reportedAnswers: 0,
    },
    verdicts: ['reviewer-one', 'reviewer-two'].map((model) => ({ ...verdict, model })),
  };
}

describe('pull requests over a connection to Gitea', () => {
  let gitea: Gitea;
  let repository: GiteaRepository;
  let folder: string;
  let tokenFile: string;
  let connection: GitConnection;
  let server: PullRequestServer;
  let cluster: GatewayFixture;

  const sectionOf = (changes: object = {}) => ({
    name: 'tools',
    hosts: [`localhost:${gitea.port}`],
    private: true,
    namespaces: ['team-a', 'team-b'],
    credentialFile: tokenFile,
    caFile: gitea.caFile,
    git: { type: 'Gitea', apiUrl: `${gitea.url}/api/v1`, repository: 'owner/tools', approver: 'system:admin' },
    ...changes,
  });
  const serverOf = (changes: object = {}) => {
    const connections = parseConnections([sectionOf(changes)], 'test');
    return hostedServer(gitConnectionFor(connections, 'tools', 'team-a'));
  };
  /** Again, as a gateway does, when Gitea does not answer in time: a second attempt finds what the first one did. */
  const open = (draft: PullRequestDraft): Promise<NumberedPullRequest> =>
    pollAssertion('the pull request', () => openPullRequest(server, draft, op()), { timeoutMs: 180_000 });
  const comments = async (number: number): Promise<string[]> =>
    ((await gitea.call('GET', `/repos/owner/tools/issues/${number}/comments`)) as { body: string }[]).map(
      ({ body }) => body,
    );
  const pulls = (branch: string) => repository.pulls(branch);
  const fileOn = (branch: string, path: string) => repository.fileOn(branch, path);
  const merge = (number: number) => repository.merge(number);

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-pull-requests-'));
    [gitea, cluster] = await Promise.all([startGitea(), GatewayFixture.open(['team-a', 'team-b', 'team-c'])]);
    repository = new GiteaRepository(gitea);
    await repository.create();
    tokenFile = join(folder, 'token');
    await writeFile(tokenFile, `${gitea.token}\n`);
    const connections = parseConnections([sectionOf()], 'test');
    connection = gitConnectionFor(connections, 'tools', 'team-a');
    server = hostedServer(connection);
  });

  after(async () => {
    await Promise.all([gitea?.[Symbol.asyncDispose](), cluster?.[Symbol.asyncDispose]()]);
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  });

  it('a pull request contains the exported files, is opened once, and has one comment with the verdicts', async () => {
    const review = reviewOf('open');
    const draft = pullRequestDraft(review, PLACE);
    const first = await open(draft);
    assert.equal(first.state, 'Open');
    assert.match(first.url, new RegExp(`^${gitea.url}/owner/tools/pulls/\\d+$`));
    for (const { path, text } of gitOpsFiles(review)) {
      assert.equal(await fileOn(draft.branch, `clusters/tools/${path}`), text);
    }
    assert.deepEqual(await open(draft), first);
    assert.equal((await pulls(draft.branch)).length, 1);
    const [comment = '', ...more] = await comments(first.number);
    assert.equal(more.length, 0);
    assert.match(comment, /### Reviewer of safety ` anthropic\/claude-sonnet-4-6 `/);
  });

  it('a request that was interrupted after any step is completed without a second pull request or comment', async () => {
    for (const [step, until] of [
      ['branch', 'create'],
      ['request', 'createComment'],
    ] as const) {
      const draft = pullRequestDraft(reviewOf(`interrupted-${step}`), PLACE);
      const interrupted = { ...server, [until]: () => Promise.reject(new Error('killed')) };
      await assert.rejects(openPullRequest(interrupted, draft, op()), /killed/);
      const pullRequest = await open(draft);
      assert.equal(pullRequest.state, 'Open');
      assert.equal((await pulls(draft.branch)).length, 1);
      assert.equal((await comments(pullRequest.number)).length, 1);
    }
  });

  it('merged files equal the export, and a revocation is one more pull request', async () => {
    const review = reviewOf('merged');
    const draft = pullRequestDraft(review, PLACE);
    const { number } = await open(draft);
    await merge(number);
    assert.equal((await server.get(number, op())).state, 'Merged');
    assert.equal((await open(draft)).state, 'Merged');
    for (const { path, text } of gitOpsFiles(review)) {
      assert.equal(await fileOn('main', `clusters/tools/${path}`), text);
    }
    const revoked = { ...review, promotion: { ...review.promotion, revoked: { by: 'alice', reason: 'wrong unit' } } };
    const second = await open(pullRequestDraft(revoked, PLACE));
    assert.notEqual(second.number, number);
    await merge(second.number);
    const target = `clusters/tools/team-a/${review.object}`;
    assert.match(await fileOn('main', `${target}/revocation.yaml`), /decision: "Revoke"/);
  });

  it('a pull request that a user closes is reported as closed, and is not opened again', async () => {
    const draft = pullRequestDraft(reviewOf('closed'), PLACE);
    const { number } = await open(draft);
    await gitea.call('PATCH', `/repos/owner/tools/pulls/${number}`, { state: 'closed' });
    assert.deepEqual(await open(draft), { ...(await server.get(number, op())), state: 'Closed' });
    assert.equal((await pulls(draft.branch)).length, 1);
  });

  it('Gitea renders hostile text only inside of code', async () => {
    const artifact = aReviewedArtifact({
      description: HOSTILE,
      implementation: { mode: 'Sandbox', source: `// ${HOSTILE}` },
      tests: [{ input: HOSTILE }],
    });
    const verdict = { model: HOSTILE, approved: true, confidence: 1, reasoning: HOSTILE };
    const draft = pullRequestDraft(reviewOf('hostile', { artifact, verdicts: [verdict] }), PLACE);
    const page = draft.files.find(({ path }) => path.endsWith('review.md'))?.text ?? '';
    for (const Text of [page, draft.body, draft.comment]) {
      const body = { Text, Mode: 'comment', Context: 'owner/tools' };
      const html = String(await gitea.call('POST', '/markdown', body));
      assert.match(html, /ZQX/);
      const outside = html.replaceAll(/<code[^>]*>[^]*?<\/code>/g, '').replaceAll(/<[^>]*>/g, (tag) => tag);
      assert.doesNotMatch(outside, /ZQX|<img|example\.com/);
    }
  });

  it('temper tool export opens the pull request of a tool of the state folder', async () => {
    const records = fileRecordStore(join(folder, 'state'));
    const audit = await openAudit({ records, clock: systemClock });
    const registry = await openRegistry({ records, audit, clock: systemClock, builtIn: new Set() });
    const accepted = anAcceptance();
    await registry.register(accepted, aCaller());
    const limits = { sessionTools: 10, agentTools: 50 };
    const owner = { agent: 'analyst', namespace: 'team-a' };
    const order = { digest: accepted.digest, owner, to: 'Agent', verdicts: [], actor: 'system', limits } as const;
    await registry.promote({ ...order, sourceWithheld: false });
    await audit.flush();
    await writeFile(join(folder, 'connections.json'), JSON.stringify({ connections: [sectionOf()] }));
    const args = ['tool', 'export', 'double', '--state', join(folder, 'state')];
    const flags = ['--connection', 'tools', '--connections', join(folder, 'connections.json'), '--path', 'tools'];
    const run = () => promisify(execFile)(TEMPER, [...args, ...flags]);
    const { stdout } = await run();
    assert.match(stdout, /^double: pull request https:\/\/localhost:\d+\/owner\/tools\/pulls\/\d+ is open; merging it/);
    assert.equal((await run()).stdout, stdout);
  });

  it('a gateway opens the pull request of a pending request, follows it, and finds it again after its restart', async () => {
    const gitOps = { connection: 'tools', branch: 'main', path: 'tools' };
    const [artifact, nonce] = [aReviewedArtifact(), 'gateway-nonce-0123456789'];
    const digest = artifactDigest(artifact);
    const agentUid = await pendingRequest(cluster, { namespace: 'team-a', artifact, nonce, gitOps });
    const operatorBus = await cluster.nats.connect('operator');
    await createPromotionStates(operatorBus).write(aPromotion(agentUid, artifact.name, digest), 0);
    await cluster.create('/api/v1/namespaces/team-b/configmaps', {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'temper-audit-heads', namespace: 'team-b' },
      data: { 'heads.json': JSON.stringify([AUDIT_HEAD]) },
    });
    const connections = parseConnections([sectionOf()], 'test');
    const branch = `temper/share-${nonce}`;
    const started = await cluster.startReplica({ connections, releaseNamespace: 'team-b' });
    const asOperator = createPullRequestStore(operatorBus);
    const states = async () => (await asOperator.read()).document?.requests.map(({ state }) => state).join();
    await pollValue('the open pull request', states, (found) => found === 'Open');
    await started.stop();
    const [pull] = await pulls(branch);
    const folderOf = `tools/team-a/${sharedObjectName('team-a', artifact.name, digest)}`;
    const text = await fileOn(branch, `${folderOf}/approval.yaml`);
    const page = await fileOn(branch, `${folderOf}/review.md`);
    assert.deepEqual(parseKnownHead(await fileOn(branch, `${folderOf}/audit-head.jsonl`)), AUDIT_HEAD);
    assert.match(page, /Signed up to record: 4711/);
    assert.match(
      page,
      /Tests: 2 passed, 0 failed[^]*Reviewer of safety ` reviewer-one `[^]*Cited lines of the tool as judges read it: 3/,
    );
    assert.match(text, /nonce: "gateway-nonce-0123456789"[^]*username: "system:admin"/);
    await merge(pull?.number ?? 0);
    const { document, revision } = await asOperator.read();
    assert.deepEqual(
      document?.requests.map(({ request, state, url }) => [request, state, url]),
      [['revenue-request', 'Open', `${gitea.url}/owner/tools/pulls/${pull?.number}`]],
    );
    const asGateway = createPullRequestStore(await cluster.nats.connect('gateway'));
    await asGateway.write({ holder: '', until: '', requests: [] }, revision);
    const restarted = await cluster.startReplica({ connections });
    await pollValue('the merged pull request', states, (found) => found === 'Merged');
    await restarted.stop();
    assert.equal((await pulls(branch)).length, 1);
    assert.ok(!cluster.logLines.join('').includes(gitea.token), 'the log has no credential');
  });

  it('a gateway brings the revocation of a user into Git, again after a restart, and when Gitea is back', async () => {
    const gitOps = { connection: 'tools', branch: 'main', path: 'revoked' };
    await cluster.createPolicy('team-b', 'shared', { promotion: { toShared: { gitOps } } });
    const review = { ...reviewOf('gateway-revokes'), namespace: 'team-b' };
    const { nonce } = review.promotion;
    const { digest } = review;
    const object = sharedObjectName('team-b', review.artifact.name, digest as Digest);
    const shared = pullRequestDraft({ ...review, object }, { branch: 'main', path: 'revoked' });
    await merge((await open(shared)).number);
    const folderOf = `revoked/team-b/${object}`;
    const approval = await fileOn('main', `${folderOf}/approval.yaml`);
    const subject = { promotion: { tool: review.artifact.name, digest, tier: 'Shared' } };
    const decide = (name: string, decision: string, user: string) =>
      cluster.create('/apis/temper.dev/v1alpha1/namespaces/team-b/approvals', {
        apiVersion: 'temper.dev/v1alpha1',
        kind: 'Approval',
        metadata: { name, namespace: 'team-b' },
        spec: { decision, nonce, reason: 'wrong unit', approvedBy: { username: user }, subject },
      });
    await decide('from-git', 'Approve', 'system:admin');
    const connections = parseConnections([sectionOf()], 'test');
    const asOperator = createPullRequestStore(await cluster.nats.connect('operator'));
    const state = async () =>
      (await asOperator.read()).document?.requests
        .filter(({ namespace }) => namespace === 'team-b')
        .map((one) => `${one.kind} ${one.request} ${one.state}`)
        .join();
    await gitea.kill();
    const first = await cluster.startReplica({ connections });
    await decide('no-more', 'Revoke', 'alice');
    await pollValue('the failure', state, (found) => found === 'Revocation no-more Failed');
    await first.stop();
    await gitea.restart();
    const { document, revision } = await asOperator.read();
    const failed = document?.requests.find(({ kind }) => kind === 'Revocation');
    assert.match(failed?.message ?? '', /connection "tools"/);
    const asGateway = createPullRequestStore(await cluster.nats.connect('gateway'));
    await asGateway.write({ holder: '', until: '', requests: [] }, revision);
    const second = await cluster.startReplica({ connections });
    await pollValue('the open pull request', state, (found) => found === 'Revocation no-more Open');
    await second.stop();
    const branch = `temper/revoke-${nonce}`;
    const [pull, ...others] = await pulls(branch);
    assert.equal(others.length, 0);
    await merge(pull?.number ?? 0);
    assert.equal(await fileOn('main', `${folderOf}/approval.yaml`), approval, 'the Approval is not written again');
    assert.match(await fileOn('main', `${folderOf}/revocation.yaml`), /decision: "Revoke"[^]*alice: wrong unit/);
    assert.match(await fileOn('main', `${folderOf}/review.md`), /revenue_by_region/, 'the page stays');
    const { revision: last } = await asOperator.read();
    await asGateway.write({ holder: '', until: '', requests: [] }, last);
    const third = await cluster.startReplica({ connections });
    await pollValue('the recorded revocation', state, (found) => found === 'Revocation no-more Merged');
    assert.equal((await pulls(branch)).length, 1);
    await third.stop();
  });

  it('a revocation becomes a commit on the branch when the connection says so, once, and only where Git has an approval', async () => {
    const review = reviewOf('commit', { object: 'committed-tool' });
    const revoked = { ...review, promotion: { ...review.promotion, revoked: { by: 'alice' } } };
    const draft = pullRequestDraft(revoked, PLACE);
    const order = { ...proposalOf(draft), how: 'Commit' } as const;
    const hosted = hostedRepository(server);
    assert.equal(await recordRevocation(hosted, order, op()), undefined, 'the branch does not have the tool');
    await merge((await open(pullRequestDraft(review, PLACE))).number);
    const { folder } = draft;
    const approval = await fileOn('main', `${folder}/approval.yaml`);
    assert.deepEqual(await recordRevocation(hosted, order, op()), { state: 'Merged' });
    assert.deepEqual(await recordRevocation(hosted, order, op()), { state: 'Merged' });
    assert.equal(await fileOn('main', `${folder}/approval.yaml`), approval);
    assert.match(await fileOn('main', `${folder}/revocation.yaml`), /revoked by alice/);
    assert.deepEqual(await pulls(draft.branch), []);
    const commits = await gitea.call('GET', `/repos/owner/tools/commits?sha=main&path=${folder}/revocation.yaml`);
    assert.equal((commits as unknown[]).length, 1);
  });

  testRebuiltCluster(() => ({ server, repository }));
  testPlainRemote(() => ({ gitea, cluster, tokenFile, stateFolder: join(folder, 'state') }));

  it('a refused credential is an error without the credential, and a rotated file is used at once', async () => {
    const wrong = join(folder, 'wrong');
    await writeFile(wrong, 'wrong-token-0123456789');
    const other = serverOf({ credentialFile: wrong });
    await assert.rejects(other.get(1, op()), (error: Error & { code?: string }) => {
      assert.equal(error.code, 'TEMPER_CONNECTION_UNAUTHORIZED');
      assert.doesNotMatch(error.message, /wrong-token/);
      return true;
    });
    await writeFile(wrong, gitea.token);
    assert.equal((await other.get(1, op())).number, 1);
  });

  it('a connection reaches only its own hosts, and a private one only when it says so', async () => {
    const denied = { code: 'TEMPER_CONNECTION_FAILED', message: /not on the public internet/ };
    await assert.rejects(serverOf({ private: false }).get(1, op()), denied);
    assert.throws(() => serverOf({ hosts: ['localhost:1'] }), { message: /which is not in hosts/ });
  });

  it('a pull request waits while Gitea is away, and is opened when it is back', async () => {
    const draft = pullRequestDraft(reviewOf('away'), PLACE);
    await gitea.kill();
    await assert.rejects(openPullRequest(server, draft, op()), { code: 'TEMPER_CONNECTION_FAILED', retry: 'backoff' });
    await gitea.restart();
    assert.equal((await open(draft)).state, 'Open');
  });
});
