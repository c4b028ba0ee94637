import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { GitRemote } from '../../../src/git/remote.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { gitOpsFiles } from '../../../src/review/gitops/gitops-files.ts';
import { proposalOf, pullRequestDraft } from '../../../src/review/pull-requests/draft.ts';
import { gitRepository } from '../../../src/review/pull-requests/git-repository.ts';
import type { PullRequestDraft } from '../../../src/review/pull-requests/port.ts';
import { recordRevocation } from '../../../src/review/pull-requests/record-revocation.ts';
import { aReview } from '../../../src/review/reviews.testing.ts';
import { BareRepository } from '../../support/gitops/bare-repository.ts';
import { NEVER_ABORTED } from '../../support/stubs.ts';

const URL = 'https://git.example.com/tools.git';
const PLACE = { branch: 'main', path: 'clusters/tools' };
const README = { 'README.md': 'Tools.\n' };
const REVIEW = aReview();
const DRAFT = pullRequestDraft(REVIEW, PLACE);
const REVOKED = { ...REVIEW, promotion: { ...REVIEW.promotion, revoked: { by: 'alice' } } };
const op = { signal: NEVER_ABORTED, deadline: Infinity, key: 'test' };

const remoteOf = (bare: BareRepository) => new GitRemote(bare.transport, systemClock);
const repositoryOf = (bare: BareRepository) => gitRepository(remoteOf(bare), URL);
const known = { url: `${URL}#${DRAFT.branch}` };

async function fileOn(bare: BareRepository, branch: string, path: string): Promise<string> {
  return (await bare.run(['cat-file', 'blob', `${branch}:${path}`], '')).toString();
}

/** The branch has the files of the draft, and Git finds nothing wrong in the repository. */
async function assertPushed(bare: BareRepository, draft: PullRequestDraft): Promise<void> {
  for (const { path, text } of draft.files) assert.equal(await fileOn(bare, draft.branch, path), text);
  assert.equal(await fileOn(bare, draft.branch, 'README.md'), 'Tools.\n', 'other files stay');
  await bare.git('fsck', '--strict', '--full');
}

describe('a promotion in a plain Git repository', () => {
  for (const filter of ['true', 'false']) {
    it(`it is a branch with one commit on top of the base, with uploadpack.allowFilter=${filter}`, async () => {
      await using bare = await BareRepository.create(README);
      await bare.git('config', 'uploadpack.allowFilter', filter);
      const repository = repositoryOf(bare);
      const expected = { url: known.url, state: 'Open' };
      assert.deepEqual(await repository.propose(proposalOf(DRAFT), op), expected);
      await assertPushed(bare, DRAFT);
      const tip = await bare.git('rev-parse', DRAFT.branch);
      const elsewhere = { ...proposalOf(DRAFT), base: 'nowhere' };
      await assert.rejects(repository.propose(elsewhere, op), { message: /has no branch nowhere/ });
      assert.deepEqual(await repository.propose(proposalOf(DRAFT), op), expected);
      assert.equal(await bare.git('rev-parse', DRAFT.branch), tip, 'it is pushed once');
      assert.equal(await bare.git('log', '--format=%an %s', `main..${DRAFT.branch}`), `Temper ${DRAFT.title}`);
      assert.equal(gitOpsFiles(REVIEW).length, DRAFT.files.length);
    });
  }

  it('it is merged when the base has its manifests, also by a squash, and after the branch is gone', async () => {
    await using bare = await BareRepository.create(README);
    const repository = repositoryOf(bare);
    await repository.propose(proposalOf(DRAFT), op);
    const half = DRAFT.files.filter(({ path }) => path.endsWith('/approval.yaml'));
    await bare.commit('main', Object.fromEntries(half.map(({ path, text }) => [path, text])));
    const never = { ...proposalOf(DRAFT), known, draft: () => assert.fail('the branch says enough') };
    assert.equal((await repository.propose(never, op)).state, 'Open', 'one of two manifests');
    await bare.commit('main', Object.fromEntries(DRAFT.files.map(({ path, text }) => [path, text])));
    assert.equal((await repository.propose(never, op)).state, 'Merged');
    await bare.git('branch', '-D', DRAFT.branch);
    assert.equal((await repository.propose({ ...proposalOf(DRAFT), known }, op)).state, 'Merged');
    assert.equal((await repository.propose(proposalOf(DRAFT), op)).state, 'Merged', 'without a memory of it');
    await assert.rejects(bare.git('rev-parse', '--verify', DRAFT.branch), 'no branch is pushed for it');
  });

  it('it is closed when a known branch is deleted without a merge, and is not pushed again', async () => {
    await using bare = await BareRepository.create(README);
    const repository = repositoryOf(bare);
    await repository.propose(proposalOf(DRAFT), op);
    await bare.git('branch', '-D', DRAFT.branch);
    assert.equal((await repository.propose({ ...proposalOf(DRAFT), known }, op)).state, 'Closed');
    await assert.rejects(bare.git('rev-parse', '--verify', DRAFT.branch));
  });

  it('a revocation is a branch of its own, and keeps the tool and its Approval', async () => {
    await using bare = await BareRepository.create(README);
    await bare.commit('main', Object.fromEntries(DRAFT.files.map(({ path, text }) => [path, text])));
    const repository = repositoryOf(bare);
    const draft = pullRequestDraft(REVOKED, PLACE);
    const order = { ...proposalOf(draft), how: 'PullRequest' } as const;
    assert.equal((await recordRevocation(repository, order, op))?.state, 'Open');
    await assertPushed(bare, draft);
    await bare.git('update-ref', 'refs/heads/main', draft.branch);
    assert.deepEqual(await recordRevocation(repository, order, op), { state: 'Merged' });
  });

  it('a revocation is committed to the branch itself while other users push to it', async () => {
    await using bare = await BareRepository.create(README);
    await bare.commit('main', Object.fromEntries(DRAFT.files.map(({ path, text }) => [path, text])));
    const remote = remoteOf(bare);
    let pushes = 0;
    const raced = {
      branches: remote.branches.bind(remote),
      filesIn: remote.filesIn.bind(remote),
      push: async (...args: Parameters<typeof remote.push>) => {
        pushes += 1;
        if (pushes < 3) await bare.commit('main', { 'other.txt': `${pushes}\n` });
        return remote.push(...args);
      },
    };
    const draft = pullRequestDraft(REVOKED, PLACE);
    const order = { ...proposalOf(draft), how: 'Commit' } as const;
    assert.deepEqual(await recordRevocation(gitRepository(raced, URL), order, op), { state: 'Merged' });
    assert.equal(pushes, 3);
    assert.equal(await fileOn(bare, 'main', 'other.txt'), '2\n', 'no push of another user is lost');
    assert.match(await fileOn(bare, 'main', `${draft.folder}/revocation.yaml`), /revoked by alice/);
    await bare.git('fsck', '--strict', '--full');
  });

  it('a branch that moves at every attempt, or whose files change, is an error that may be retried', async () => {
    await using bare = await BareRepository.create(README);
    await bare.commit('main', Object.fromEntries(DRAFT.files.map(({ path, text }) => [path, text])));
    const remote = remoteOf(bare);
    const draft = pullRequestDraft(REVOKED, PLACE);
    const order = { ...proposalOf(draft), how: 'Commit' } as const;
    for (const [path, message] of [
      ['other.txt', /the server refuses the push to main/],
      [`${draft.folder}/review.md`, /review\.md has changed since it was read/],
    ] as const) {
      let pushes = 0;
      const raced = {
        branches: remote.branches.bind(remote),
        filesIn: remote.filesIn.bind(remote),
        push: async (...args: Parameters<typeof remote.push>) => {
          pushes += 1;
          await bare.commit('main', { [path]: `${pushes}\n` });
          return remote.push(...args);
        },
      };
      const failed = { code: 'TEMPER_CONNECTION_FAILED', retry: 'backoff', message };
      await assert.rejects(recordRevocation(gitRepository(raced, URL), order, op), failed);
      assert.ok(pushes <= 3, `${pushes} pushes`);
    }
    await assert.rejects(fileOn(bare, 'main', `${draft.folder}/revocation.yaml`));
  });

  it('a refusal of a hook is an error with what the hook says, in one printable line', async () => {
    await using bare = await BareRepository.create(README);
    await bare.hook('pre-receive', `printf 'sign your commits\\033[31m\\n' >&2; exit 1`);
    await assert.rejects(repositoryOf(bare).propose(proposalOf(DRAFT), op), {
      code: 'TEMPER_CONNECTION_FAILED',
      message: /refuses the push to temper\/share-\S+: pre-receive hook declined \(sign your commits\\u\{1b\}\[31m\)/,
    });
  });

  it('a repository without the branch, one with SHA-256 ids, and a link in the way are named', async () => {
    await using empty = await BareRepository.create(undefined);
    const failed = (message: RegExp) => ({ code: 'TEMPER_CONNECTION_FAILED', message });
    await assert.rejects(
      repositoryOf(empty).propose(proposalOf(DRAFT), op),
      failed(/has no branch main; push a first/),
    );
    await using sha256 = await BareRepository.create(undefined, '--object-format=sha256');
    await assert.rejects(
      repositoryOf(sha256).propose(proposalOf(DRAFT), op),
      failed(/another object format than sha1/),
    );
    await using linked = await BareRepository.create({ clusters: 'no folder' });
    await assert.rejects(repositoryOf(linked).propose(proposalOf(DRAFT), op), failed(/something other than a folder/));
  });

  it('a commit without any file is a base as well', async () => {
    await using bare = await BareRepository.create({});
    assert.equal((await repositoryOf(bare).propose(proposalOf(DRAFT), op)).state, 'Open');
    await bare.git('fsck', '--strict', '--full');
  });

  it('folders that the server sends as deltas are read', async () => {
    const many = Object.fromEntries(
      Array.from({ length: 300 }, (_, index) => [`clusters/tools/team-b/t${index}.txt`, 'x\n']),
    );
    await using bare = await BareRepository.create({ ...README, ...many });
    for (let round = 0; round < 4; round += 1) {
      await bare.commit('main', { 'clusters/tools/team-b/t7.txt': `${round}\n`, [`copies/${round}/t.txt`]: 'x\n' });
    }
    const tree = await bare.git('rev-parse', 'main:clusters/tools/team-b');
    const copies = Array.from(
      { length: 6 },
      (_, index) =>
        `M 040000 ${tree} copies/${index}/tree\nM 100644 inline copies/${index}/tree/more${index}.txt\ndata 2\nx\n`,
    );
    const head = [
      `commit refs/heads/main`,
      'committer u <u@example.com> 1700000000 +0000',
      'data 4',
      'test',
      'from refs/heads/main^0',
    ];
    await bare.run(['fast-import', '--quiet'], [...head, ...copies, ''].join('\n'));
    await bare.git('repack', '-adfq', '--depth=50', '--window=50');
    const deltas = await bare.git('cat-file', '--batch-all-objects', '--batch-check=%(objecttype) %(deltabase)');
    assert.ok(
      deltas.split('\n').some((line) => /^tree (?!0{40})/.test(line)),
      'the repository has deltas of folders',
    );
    const remote = remoteOf(bare);
    const main = (await remote.branches(['main'], op)).get('main') ?? '';
    for (const folder of ['clusters/tools/team-b', ...[0, 1, 2, 3, 4, 5].map((index) => `copies/${index}/tree`)]) {
      const names = (await bare.git('ls-tree', '--name-only', `main:${folder}`))
        .split('\n')
        .map((name) => `${folder}/${name}`);
      assert.deepEqual([...(await remote.filesIn(folder, main, op)).keys()], names);
    }
  });
});
