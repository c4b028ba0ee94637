import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ApiRequest } from '../../connections/connection-client.ts';
import type { HostedGitConnection } from '../../connections/connection.ts';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import { type Json, textAt } from '../../lib/json.ts';
import { aReview, aReviewedArtifact } from '../reviews.testing.ts';
import { RepositoryApi } from './api.ts';
import { proposalOf, pullRequestDraft, revocationDraft } from './draft.ts';
import { giteaServer } from './gitea.ts';
import { githubServer } from './github.ts';
import { gitlabServer } from './gitlab.ts';
import { changesOf, hostedRepository, openPullRequest } from './open-pull-request.ts';
import type { PullRequestServer } from './port.ts';
import { recordRevocation } from './record-revocation.ts';

const op = { signal: NEVER_ABORTED, deadline: Number.MAX_SAFE_INTEGER, key: 'test' };
const PLACE = { branch: 'main', path: 'tools' };
const FOLDER = 'tools/team-a/revenue-by-region-mzxw6ytboi5dcmrvgq3tqojq7e';
const BRANCH = 'temper/share-k4q7pWm2Zc8vN1xRt6Yb';

type Answers = Record<string, [status: number, body: Json]>;

/** Answers by method and path without the query. Everything else does not exist. */
function connectionWith(type: HostedGitConnection['git']['type'], answers: Answers) {
  const requests: ApiRequest[] = [];
  const repository = type === 'GitLab' ? 'group/sub/tools' : 'org/tools';
  const connection: HostedGitConnection = {
    name: 'tools',
    hosts: ['git.example.com:443'],
    credentialFile: '/token',
    git: { type, apiUrl: 'https://git.example.com/api/', repository },
  };
  const client = async (request: ApiRequest) => {
    requests.push(request);
    const path = request.url.replace('https://git.example.com/api', '').split('?')[0] ?? '';
    const [status, body] = answers[`${request.method} ${path}`] ?? [404, { message: 'Not Found' }];
    return { status, body, message: () => textAt(body, ['message']) };
  };
  const summary = () =>
    requests.map(({ method, url }) => `${method} ${url.replace('https://git.example.com/api', '')}`);
  const bodyOf = (path: string) => requests.find(({ method, url }) => method === 'POST' && url.endsWith(path))?.body;
  const apiAt = (root: string) => new RepositoryApi(client, connection, root);
  return { requests, summary, bodyOf, apiAt };
}

const draft = pullRequestDraft(aReview(), PLACE);
const [toolFile] = draft.files;

describe('pull requests on GitHub', () => {
  const pull = { number: 7, html_url: 'https://github.com/org/tools/pull/7', state: 'open', merged_at: null };
  const answers: Answers = {
    'GET /repos/org/tools/pulls': [200, []],
    [`GET /repos/org/tools/contents/${FOLDER}`]: [
      200,
      [
        { type: 'file', path: `${FOLDER}/approval.yaml`, sha: 'old-approval' },
        { type: 'file', path: `${FOLDER}/revocation.yaml`, sha: 'old-revocation' },
      ],
    ],
    'GET /repos/org/tools/git/ref/heads/main': [200, { object: { sha: 'c0' } }],
    'GET /repos/org/tools/git/commits/c0': [200, { tree: { sha: 't0' } }],
    'POST /repos/org/tools/git/trees': [201, { sha: 't1' }],
    'POST /repos/org/tools/git/commits': [201, { sha: 'c1' }],
    'POST /repos/org/tools/git/refs': [201, {}],
    'POST /repos/org/tools/pulls': [201, pull],
    'GET /repos/org/tools/issues/7/comments': [200, []],
    'POST /repos/org/tools/issues/7/comments': [201, {}],
  };
  const serverWith = (changes: Answers) => {
    const connection = connectionWith('GitHub', { ...answers, ...changes });
    return { ...connection, server: githubServer(connection.apiAt('repos/org/tools'), 'org/tools') };
  };

  it('one commit with all files becomes a branch, a pull request and a comment', async () => {
    const { server, summary, bodyOf } = serverWith({});
    assert.deepEqual(await openPullRequest(server, draft, op), { number: 7, url: pull.html_url, state: 'Open' });
    assert.deepEqual(summary().slice(0, 2), [
      `GET /repos/org/tools/pulls?state=all&per_page=1&head=${encodeURIComponent(`org:${BRANCH}`)}&base=main`,
      `GET /repos/org/tools/git/ref/heads/${BRANCH}`,
    ]);
    const tree = bodyOf('/git/trees') as { base_tree: string; tree: { path: string; content?: string; sha?: null }[] };
    assert.equal(tree.base_tree, 't0');
    assert.deepEqual(
      tree.tree.map(({ path }) => path.replace(`${FOLDER}/`, '')),
      ['emergenttool.yaml', 'approval.yaml', 'review.md', 'review.html', 'audit-head.jsonl', 'revocation.yaml'],
    );
    assert.equal(tree.tree[0]?.content, toolFile?.text);
    assert.equal(tree.tree.at(-1)?.sha, null, 'the revocation of an earlier request is removed');
    assert.deepEqual(bodyOf('/git/commits'), { message: draft.title, tree: 't1', parents: ['c0'] });
    assert.deepEqual(bodyOf('/git/refs'), { ref: `refs/heads/${BRANCH}`, sha: 'c1' });
    assert.deepEqual(bodyOf('/pulls'), { head: BRANCH, base: 'main', title: draft.title, body: draft.body });
  });

  it('an existing pull request is found, and an existing branch is not written again', async () => {
    const found = serverWith({ 'GET /repos/org/tools/pulls': [200, [{ ...pull, state: 'closed', merged_at: 'now' }]] });
    assert.equal((await openPullRequest(found.server, draft, op)).state, 'Merged');
    assert.ok(found.requests.every(({ method }) => method === 'GET'));
    const half = serverWith({ [`GET /repos/org/tools/git/ref/heads/${BRANCH}`]: [200, {}] });
    assert.equal((await openPullRequest(half.server, draft, op)).number, 7);
    assert.equal(half.bodyOf('/git/trees'), undefined);
  });

  it('a pull request that the server refuses is an error that names the branch', async () => {
    const { server } = serverWith({ 'POST /repos/org/tools/pulls': [422, { message: 'Validation Failed' }] });
    await assert.rejects(openPullRequest(server, draft, op), {
      code: 'TEMPER_CONNECTION_FAILED',
      message: /temper\/share-/,
    });
  });
});

describe('a commit on the branch itself', () => {
  const changes = [{ path: `${FOLDER}/revocation.yaml`, text: 'kind: Approval\n', previous: undefined }];

  it('GitHub moves the branch only from the commit that was read', async () => {
    const { apiAt, requests } = connectionWith('GitHub', {
      'GET /repos/org/tools/git/ref/heads/main': [200, { object: { sha: 'c0' } }],
      'GET /repos/org/tools/git/commits/c0': [200, { tree: { sha: 't0' } }],
      'POST /repos/org/tools/git/trees': [201, { sha: 't1' }],
      'POST /repos/org/tools/git/commits': [201, { sha: 'c1' }],
      'PATCH /repos/org/tools/git/refs/heads/main': [200, {}],
    });
    await githubServer(apiAt('repos/org/tools'), 'org/tools').commit(draft, changes, op);
    assert.deepEqual(requests.at(-1)?.body, { sha: 'c1', force: false });
  });

  it('GitLab and Gitea commit without a new branch, and a branch that moved is an error that may be retried', async () => {
    const moved = { code: 'TEMPER_CONNECTION_FAILED', retry: 'backoff' };
    const gitlab = connectionWith('GitLab', { 'POST /p/repository/commits': [201, {}] });
    await gitlabServer(gitlab.apiAt('p')).commit(draft, changes, op);
    assert.deepEqual(gitlab.requests[0]?.body, {
      branch: 'main',
      commit_message: draft.title,
      actions: [{ action: 'create', file_path: changes[0]?.path, content: 'kind: Approval\n' }],
    });
    const gitea = connectionWith('Gitea', { 'POST /r/contents': [422, { message: 'already exists' }] });
    await assert.rejects(giteaServer(gitea.apiAt('r')).commit(draft, changes, op), moved);
    assert.equal((gitea.bodyOf('/contents') as { branch: string }).branch, 'main');
  });
});

describe('the changes of a revocation', () => {
  it('the tool and its Approval stay as the branch has them, and are written where it has none', async () => {
    const review = aReview();
    const revoked = { ...review, promotion: { ...review.promotion, revoked: { by: 'alice' } } };
    const facts = { ...revoked, artifact: { name: review.artifact.name } };
    const on = (names: string[]) => ({
      filesIn: async () => new Map(names.map((name) => [`${FOLDER}/${name}`, 'v1'])),
    });
    const changed = async (branch: string[], one = pullRequestDraft(revoked, PLACE)) =>
      (await changesOf(on(branch) as never, one, op)).map(({ path, text }) =>
        [path.replace(`${FOLDER}/`, ''), text === undefined ? 'removed' : ''].join(' ').trim(),
      );
    const all = ['emergenttool.yaml', 'approval.yaml', 'review.md', 'review.html', 'audit-head.jsonl'];
    assert.deepEqual((await changed(all)).sort(), ['audit-head.jsonl', 'review.html', 'review.md', 'revocation.yaml']);
    assert.deepEqual((await changed([])).sort(), [...all, 'revocation.yaml'].sort());
    assert.deepEqual(await changed(all, revocationDraft(facts, PLACE)), ['revocation.yaml']);
    const files = Object.fromEntries(revocationDraft(facts, PLACE).files.map(({ path, text }) => [path, text]));
    const [, page] = Object.entries(files).find(([path]) => path.endsWith('revocation.yaml')) ?? [];
    const same = pullRequestDraft(revoked, PLACE).files.find(({ path }) => path.endsWith('revocation.yaml'));
    assert.equal(page, same?.text);
  });
});

describe('merge requests on GitLab', () => {
  const root = `/projects/${encodeURIComponent('group/sub/tools')}`;
  const request = { iid: 3, web_url: 'https://gitlab.com/x/-/merge_requests/3', state: 'opened' };
  const answers: Answers = {
    [`GET ${root}/merge_requests`]: [200, []],
    [`GET ${root}/repository/tree`]: [200, [{ type: 'blob', path: `${FOLDER}/approval.yaml`, id: 'old' }]],
    [`POST ${root}/repository/commits`]: [201, {}],
    [`POST ${root}/merge_requests`]: [201, request],
    [`GET ${root}/merge_requests/3/notes`]: [200, []],
    [`POST ${root}/merge_requests/3/notes`]: [201, {}],
  };
  const serverWith = (changes: Answers) => {
    const connection = connectionWith('GitLab', { ...answers, ...changes });
    return { ...connection, server: gitlabServer(connection.apiAt(root.slice(1))) };
  };

  it('one commit on a new branch becomes a merge request with a note', async () => {
    const { server, bodyOf, summary } = serverWith({});
    assert.deepEqual(await openPullRequest(server, draft, op), { number: 3, url: request.web_url, state: 'Open' });
    const commit = bodyOf('/repository/commits') as {
      branch: string;
      start_branch: string;
      actions: { action: string }[];
    };
    assert.deepEqual([commit.branch, commit.start_branch], [BRANCH, 'main']);
    assert.deepEqual(
      commit.actions.map(({ action }) => action),
      ['create', 'update', 'create', 'create', 'create'],
    );
    assert.equal(summary()[1], `GET ${root}/repository/branches/${encodeURIComponent(BRANCH)}`);
    assert.match(JSON.stringify(bodyOf('/notes')), /temper\/share-k4q7pWm2Zc8vN1xRt6Yb/);
  });

  it('the state of a merge request is that of the server', async () => {
    const states = { opened: 'Open', locked: 'Open', merged: 'Merged', closed: 'Closed' };
    for (const [state, expected] of Object.entries(states)) {
      const { server } = serverWith({ [`GET ${root}/merge_requests/3`]: [200, { ...request, state }] });
      assert.equal((await server.get(3, op)).state, expected);
    }
  });
});

describe('a revocation that cannot be brought into Git', () => {
  const order = { ...proposalOf(draft), how: 'PullRequest' } as const;

  it('a missing branch, a refusal and a page for users are errors, and never an empty repository', async () => {
    const contents = `GET /r/contents/${FOLDER}`;
    for (const [answers, message] of [
      [{}, /its branch main, does not exist/],
      [{ [contents]: [200, null] }, /answered without JSON; check git\.apiUrl/],
      [{ [contents]: [409, { message: 'empty' }] }, /answered 409 \(empty\)/],
      [{ [contents]: [422, {}] }, /answered 422/],
      [{ [contents]: [200, []], 'GET /r/branches/main': [200, ''] }, /answered without JSON/],
    ] as [Answers, RegExp][]) {
      const { apiAt, requests } = connectionWith('Gitea', answers);
      const failed = { code: 'TEMPER_CONNECTION_FAILED', retry: 'backoff', message };
      await assert.rejects(recordRevocation(hostedRepository(giteaServer(apiAt('r'))), order, op), failed);
      assert.ok(requests.every(({ method }) => method === 'GET'));
    }
    const { apiAt } = connectionWith('Gitea', { 'GET /r/branches/main': [200, {}] });
    assert.equal(await recordRevocation(hostedRepository(giteaServer(apiAt('r'))), order, op), undefined);
  });

  it('a merged pull request without its file on the branch is reported, and none is opened again', async () => {
    const { branch } = draft;
    const merged = { number: 3, merged: true, html_url: 'https://x/3', head: { ref: branch }, base: { ref: 'main' } };
    const { apiAt, requests } = connectionWith('Gitea', {
      [`GET /r/contents/${FOLDER}`]: [200, [{ type: 'file', path: `${FOLDER}/approval.yaml`, sha: 'v1' }]],
      'GET /r/pulls': [200, [merged]],
    });
    await assert.rejects(recordRevocation(hostedRepository(giteaServer(apiAt('r'))), order, op), {
      code: 'TEMPER_CONNECTION_FAILED',
      message: /https:\/\/x\/3 is merged, and branch main has no revocation\.yaml/,
    });
    assert.ok(requests.every(({ method }) => method === 'GET'));
  });
});

describe('every server of pull requests', () => {
  it('an unexpected status is an error with the message of the server, and without control characters', async () => {
    const servers: [string, PullRequestServer][] = (['GitHub', 'GitLab', 'Gitea'] as const).map((type) => {
      const api = connectionWith(type, {}).apiAt('root');
      const server = { GitHub: githubServer(api, 'o/r'), GitLab: gitlabServer(api), Gitea: giteaServer(api) }[type];
      return [type, server];
    });
    for (const [type, server] of servers) {
      await assert.rejects(
        server.find('b', 'main', op),
        { code: 'TEMPER_CONNECTION_FAILED', message: /404 \(Not Found\)/ },
        type,
      );
    }
  });
});

describe('the draft of a pull request', () => {
  it('no text of the tool is in the branch, and only its name is in a path', () => {
    const artifact = aReviewedArtifact({ description: '../../etc/passwd' });
    const hostile = pullRequestDraft(aReview({ artifact }), PLACE);
    assert.equal(hostile.branch, BRANCH);
    for (const { path } of hostile.files)
      assert.match(path, /^tools\/team-a\/[a-z0-9-]+\/[a-z-]+\.(?:yaml|md|html|jsonl)$/);
  });

  it('a signed head of an earlier promotion stays in the folder until a newer one replaces it', () => {
    const file = `${FOLDER}/audit-head.jsonl`;
    const { auditHead: _, ...without } = aReview();
    const revoked = { ...without.promotion, revoked: { by: 'alice' } };
    for (const review of [without, { ...without, promotion: revoked }]) {
      const { files, kept } = pullRequestDraft(review, PLACE);
      assert.ok(kept.includes(file) && !files.some(({ path }) => path === file));
    }
    const { files, kept } = pullRequestDraft(aReview(), PLACE);
    assert.ok(!kept.includes(file) && files.some(({ path }) => path === file));
    assert.ok(revocationDraft({ ...aReview(), promotion: revoked }, PLACE).kept.includes(file));
  });

  it('a branch or path that Git or a server could misread is refused', () => {
    for (const branch of ['', '-x', 'a..b', 'a//b', 'a.lock', 'a b', 'x/', 'a/.b', 'refs\nheads', '@{1}']) {
      assert.throws(
        () => pullRequestDraft(aReview(), { ...PLACE, branch }),
        { code: 'TEMPER_MANIFEST_INVALID' },
        branch,
      );
    }
    for (const path of ['../x', 'a/../b', '.git', '.github/workflows', 'a b', 'a\\b', '-x']) {
      assert.throws(() => pullRequestDraft(aReview(), { ...PLACE, path }), { code: 'TEMPER_MANIFEST_INVALID' }, path);
    }
    const nonce = '../../main/0123456789';
    const review = aReview();
    const changed = { ...review, promotion: { ...review.promotion, nonce } };
    assert.throws(() => pullRequestDraft(changed, PLACE), { code: 'TEMPER_MANIFEST_INVALID' });
    assert.equal(pullRequestDraft(aReview(), { branch: 'main', path: '' }).folder, FOLDER.replace('tools/', ''));
  });

  it('texts that a server would refuse become a reference to the page', () => {
    const verdict = { model: 'm', approved: true, confidence: 1, reasoning: 'x\n'.repeat(4_000) };
    const { comment, body } = pullRequestDraft(aReview({ verdicts: Array.from({ length: 20 }, () => verdict) }), PLACE);
    assert.match(comment, /^The text is too long for this place\. Read it in ` tools\/team-a/);
    assert.match(body, /The whole page is in ` tools\/team-a/);
  });
});
