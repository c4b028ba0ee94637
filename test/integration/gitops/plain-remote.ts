import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gitConnectionFor, parseConnections } from '../../../src/connections/connection.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { createPullRequestStore } from '../../../src/nats/pull-requests.ts';
import { sharedObjectName } from '../../../src/review/gitops/review-of-objects.ts';
import { repositoryOf } from '../../../src/review/pull-requests/servers.ts';
import { aReviewedArtifact } from '../../../src/review/reviews.testing.ts';
import { artifactDigest } from '../../../src/tempering/registry/serialization.ts';
import type { Gitea } from '../../cluster/gitea.ts';
import type { GatewayFixture } from '../../support/gateway/gateway-fixture.ts';
import { pollValue } from '../../support/poll.ts';
import { NEVER_ABORTED } from '../../support/stubs.ts';
import { pendingRequest } from './pending-request.ts';

export interface PlainRemote {
  readonly gitea: Gitea;
  readonly cluster: GatewayFixture;
  readonly tokenFile: string;
  /** A state folder with the tool `double`. */
  readonly stateFolder: string;
}

const TEMPER = fileURLToPath(new URL('../../../bin/temper', import.meta.url));
const NAMESPACE = 'team-c';
const NONCE = 'plain-nonce-0123456789';
const BRANCH = `temper/share-${NONCE}`;
const GIT_OPS = { connection: 'plain', branch: 'main', path: 'tools' };

/** A checkout with the real command line of Git, as a user has one. */
class Checkout implements AsyncDisposable {
  readonly folder: string;
  readonly #options: { cwd: string; env: NodeJS.ProcessEnv };

  private constructor(folder: string, { token, caFile }: Gitea) {
    this.folder = folder;
    const env = { PATH: process.env['PATH'], HOME: folder, GIT_CONFIG_NOSYSTEM: '1', GIT_SSL_CAINFO: caFile };
    const header = `AUTHORIZATION: basic ${Buffer.from(`git:${token}`).toString('base64')}`;
    const config = { GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: 'http.extraHeader', GIT_CONFIG_VALUE_0: header };
    this.#options = { cwd: folder, env: { ...env, ...config } };
  }

  static async clone(gitea: Gitea): Promise<Checkout> {
    const checkout = new Checkout(await mkdtemp(join(tmpdir(), 'temper-checkout-')), gitea);
    await checkout.git('clone', '-q', `${gitea.url}/owner/plain.git`, '.');
    await checkout.git('config', 'user.name', 'alice');
    await checkout.git('config', 'user.email', 'alice@example.com');
    return checkout;
  }

  async git(...args: string[]): Promise<string> {
    return (await promisify(execFile)('git', args, this.#options)).stdout.trim();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }
}

function connectionsOf({ gitea, tokenFile }: PlainRemote, changes: object = {}) {
  const section = {
    name: 'plain',
    hosts: [`localhost:${gitea.port}`],
    private: true,
    namespaces: [NAMESPACE],
    credentialFile: tokenFile,
    caFile: gitea.caFile,
    git: { type: 'Git', url: `${gitea.url}/owner/plain.git`, approver: 'system:admin', revocations: 'Commit' },
    ...changes,
  };
  return parseConnections([section], 'test');
}

/** The documented command, with a plain repository in place of a server with pull requests. */
async function exportTwice(remote: PlainRemote, checkout: Checkout): Promise<void> {
  const file = join(checkout.folder, '.git', 'connections.json');
  await writeFile(file, JSON.stringify({ connections: connectionsOf(remote, { namespaces: ['team-a'] }) }));
  const args = ['tool', 'export', 'double', '--state', remote.stateFolder, '--connection', 'plain'];
  const run = () => promisify(execFile)(TEMPER, [...args, '--connections', file, '--branch', 'main', '--path', 'cli']);
  const { stdout } = await run();
  const [, branch = ''] = /^double: branch https:\/\/\S+\/plain\.git#(\S+) is open; merging it/.exec(stdout) ?? [];
  assert.notEqual(branch, '', stdout);
  assert.equal((await run()).stdout, stdout);
  await checkout.git('fetch', '-q');
  assert.match(
    await checkout.git('ls-tree', '-r', '--name-only', `origin/${branch}`),
    /^cli\/team-a\/double-\S+\/approval/m,
  );
}

/** A gateway, and a user with the command line of Git, over one repository without any REST interface. */
export function testPlainRemote(remoteOf: () => PlainRemote): void {
  it('a gateway pushes a branch to a plain Git repository, sees its merge, and commits the revocation', async () => {
    const remote = remoteOf();
    const { gitea, cluster } = remote;
    await gitea.call('POST', '/user/repos', { name: 'plain', auto_init: true, default_branch: 'main' });
    const artifact = aReviewedArtifact();
    const digest = artifactDigest(artifact);
    await pendingRequest(cluster, { namespace: NAMESPACE, artifact, nonce: NONCE, gitOps: GIT_OPS });
    const operatorBus = createPullRequestStore(await cluster.nats.connect('operator'));
    const states = async () =>
      (await operatorBus.read()).document?.requests
        .filter(({ namespace }) => namespace === NAMESPACE)
        .map(({ kind, state, message = '', url = '' }) => `${kind} ${state} ${url}${message}`)
        .join();
    const connections = connectionsOf(remote);
    const shown = `${gitea.url}/owner/plain.git#${BRANCH}`;
    const first = await cluster.startReplica({ connections });
    await pollValue('the branch', states, (found) => found === `Request Open ${shown}`);
    await first.stop();

    await using checkout = await Checkout.clone(gitea);
    await exportTwice(remote, checkout);
    const folder = `tools/${NAMESPACE}/${sharedObjectName(NAMESPACE, artifact.name, digest)}`;
    assert.equal(await checkout.git('log', '--format=%an', `main..origin/${BRANCH}`), 'Temper');
    await checkout.git('merge', '-q', '--squash', `origin/${BRANCH}`);
    await checkout.git('commit', '-q', '-m', 'Share it');
    await checkout.git('push', '-q', 'origin', 'main');
    await checkout.git('push', '-q', 'origin', '--delete', BRANCH);
    await checkout.git('fsck', '--strict');
    const approval = await readFile(join(checkout.folder, folder, 'approval.yaml'), 'utf8');
    assert.match(approval, new RegExp(`nonce: "${NONCE}"[^]*username: "system:admin"`));
    assert.match(await readFile(join(checkout.folder, folder, 'review.md'), 'utf8'), /revenue_by_region/);

    await forgetAge(cluster, operatorBus);
    const second = await cluster.startReplica({ connections });
    await pollValue('the merge', states, (found) => found === `Request Merged ${shown}`);
    await second.stop();

    const decide = (name: string, decision: string, username: string) =>
      cluster.create(`/apis/temper.dev/v1alpha1/namespaces/${NAMESPACE}/approvals`, {
        apiVersion: 'temper.dev/v1alpha1',
        kind: 'Approval',
        metadata: { name, namespace: NAMESPACE },
        spec: {
          decision,
          nonce: NONCE,
          reason: 'wrong unit',
          approvedBy: { username },
          subject: { promotion: { tool: artifact.name, digest, tier: 'Shared' } },
        },
      });
    await decide('plain-approved', 'Approve', 'system:admin');
    await decide('plain-revoked', 'Revoke', 'alice');
    const third = await cluster.startReplica({ connections });
    await pollValue('the revocation', states, (found) => found === `Request Merged ${shown},Revocation Merged `);
    await third.stop();
    await checkout.git('pull', '-q', '--ff-only');
    assert.match(await readFile(join(checkout.folder, folder, 'revocation.yaml'), 'utf8'), /"Revoke"[^]*alice: wrong/);
    assert.equal(await readFile(join(checkout.folder, folder, 'approval.yaml'), 'utf8'), approval);
    assert.equal(await checkout.git('rev-list', '--count', 'main', '--', `${folder}/revocation.yaml`), '1');
    await checkout.git('fsck', '--strict');
    assert.ok(!cluster.logLines.join('').includes(gitea.token), 'the log has no credential');
  });

  it('a repository that is not there, and a credential that is refused, are errors without the credential', async () => {
    const remote = remoteOf();
    const op = { signal: NEVER_ABORTED, deadline: systemClock.monotonic() + 60_000, key: 'test' };
    const hasMain = (changes: object) => {
      const connection = gitConnectionFor(connectionsOf(remote, changes), 'plain', NAMESPACE);
      return repositoryOf(connection, { clock: systemClock }).hasBranch('main', op);
    };
    assert.equal(await hasMain({}), true);
    const gone = { type: 'Git', url: `${remote.gitea.url}/owner/gone.git`, approver: 'system:admin' };
    await assert.rejects(hasMain({ git: gone }), {
      code: 'TEMPER_CONNECTION_FAILED',
      message: /does not exist, or is not visible to the token/,
    });
    const page = { ...gone, url: `${remote.gitea.url}/owner` };
    await assert.rejects(hasMain({ git: page }), { code: 'TEMPER_CONNECTION_FAILED', message: /check .*git\.url/ });
    const folder = await mkdtemp(join(tmpdir(), 'temper-token-'));
    try {
      await writeFile(join(folder, 'token'), 'wrong-token-0123456789');
      await assert.rejects(hasMain({ credentialFile: join(folder, 'token') }), (error: Error & { code?: string }) => {
        assert.equal(error.code, 'TEMPER_CONNECTION_UNAUTHORIZED');
        assert.doesNotMatch(error.message, /wrong-token/);
        return true;
      });
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
}

/** The next round looks again at once. What it knows of the branch stays. */
async function forgetAge(
  cluster: GatewayFixture,
  store: Pick<ReturnType<typeof createPullRequestStore>, 'read'>,
): Promise<void> {
  const { document, revision } = await store.read();
  const requests = (document?.requests ?? []).map((state) => ({ ...state, checkedAt: '2000-01-01T00:00:00.000Z' }));
  const asGateway = createPullRequestStore(await cluster.nats.connect('gateway'));
  await asGateway.write({ holder: '', until: '', requests }, revision);
}
