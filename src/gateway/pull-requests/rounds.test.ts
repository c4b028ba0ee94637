import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import type { Approval } from '../../api/v1alpha1/approval.ts';
import type { ApprovalRequest } from '../../api/v1alpha1/approvalrequest.ts';
import type { EmergentTool } from '../../api/v1alpha1/emergenttool.ts';
import { parseConnections } from '../../connections/connection.ts';
import { TemperError } from '../../lib/errors.ts';
import type { PullRequestDocument, PullRequestStore } from '../../nats/pull-requests.ts';
import { hostedRepository } from '../../review/pull-requests/open-pull-request.ts';
import type { NumberedPullRequest, PullRequestDraft, PullRequestServer } from '../../review/pull-requests/port.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createSecretRedactor } from '../../telemetry/secret-redactor.ts';
import { artifactDigest } from '../../tempering/registry/serialization.ts';
import { anArtifact, createFakeClock } from '../../tempering/tempering.testing.ts';
import { requestTask } from './request-task.ts';
import { pullRequestRound, type RoundDeps } from './rounds.ts';

const MINUTE_MS = 60_000;
const ARTIFACT = anArtifact('double');
const DIGEST = artifactDigest(ARTIFACT);
const TOOL = {
  apiVersion: 'temper.dev/v1alpha1',
  kind: 'EmergentTool',
  metadata: { name: 'double-1', namespace: 'team-a' },
  spec: { artifact: ARTIFACT, digest: DIGEST, tier: 'Agent' },
} satisfies EmergentTool;

const PENDING = { namespace: 'team-a', promotion: { tool: 'double', digest: DIGEST } };

function aRequest(nonce = 'k4q7pWm2Zc8vN1xRt6Yb'): ApprovalRequest {
  return {
    apiVersion: 'temper.dev/v1alpha1',
    kind: 'ApprovalRequest',
    metadata: { name: `double-${nonce.slice(0, 4).toLowerCase()}`, namespace: 'team-a', uid: `uid-${nonce}` },
    spec: {
      type: 'PromoteTool',
      agent: { name: 'analyst', uid: 'u-1' },
      nonce,
      summary: 'Promote double.',
      risk: 'low',
      subject: { promotion: { tool: 'double', digest: DIGEST, tier: 'Shared' } },
    },
  };
}

/** A server that keeps pull requests in memory, and fails while `problem` is set. */
class MemoryServer implements PullRequestServer {
  readonly opened: PullRequestDraft[] = [];
  readonly comment: string[] = [];
  readonly calls: string[] = [];
  state: NumberedPullRequest['state'] = 'Open';
  problem: Error | undefined;

  async find(branch: string): Promise<NumberedPullRequest | undefined> {
    this.#called('find');
    const index = this.opened.findIndex((draft) => draft.branch === branch);
    return index === -1 ? undefined : this.#pull(index);
  }
  async get(number: number): Promise<NumberedPullRequest> {
    this.#called('get');
    return this.#pull(number - 1);
  }
  async hasBranch(): Promise<boolean> {
    return false;
  }
  async filesIn(): Promise<Map<string, string>> {
    return new Map();
  }
  async createBranch(): Promise<void> {
    this.#called('branch');
  }
  async commit(): Promise<void> {
    this.#called('commit');
  }
  async create(draft: PullRequestDraft): Promise<NumberedPullRequest> {
    this.#called('create');
    this.opened.push(draft);
    return this.#pull(this.opened.length - 1);
  }
  async comments(): Promise<string[]> {
    return this.comment;
  }
  async createComment(_number: number, text: string): Promise<void> {
    this.comment.push(text);
  }
  #pull(index: number): NumberedPullRequest {
    return { number: index + 1, url: `https://git.example.com/${index + 1}`, state: this.state };
  }
  #called(name: string): void {
    this.calls.push(name);
    if (this.problem !== undefined) throw this.problem;
  }
}

/** The document of the release, with optimistic concurrency. */
function memoryStore(): PullRequestStore & { document(): PullRequestDocument | undefined } {
  let stored: PullRequestDocument | undefined;
  let revision = 0;
  return {
    document: () => stored,
    read: async () => ({ document: stored, revision }),
    write: async (document, expected) => {
      if (expected !== revision) return undefined;
      stored = document;
      revision += 1;
      return revision;
    },
  };
}

function aFixture(requests: ApprovalRequest[] = [aRequest()]) {
  const clock = createFakeClock();
  let store = memoryStore();
  const server = new MemoryServer();
  const connections = parseConnections(
    [
      {
        name: 'tools',
        hosts: ['git.example.com:443'],
        namespaces: ['team-a'],
        credentialFile: '/token',
        git: { type: 'Gitea', apiUrl: 'https://git.example.com', repository: 'o/r', approver: 'system:admin' },
      },
    ],
    'test',
  );
  const pendingRequests = { requests, gitOps: { connection: 'tools', branch: 'main', path: 'tools' } };
  const material: { approvals: Approval[] } = { approvals: [] };
  const depsOf = (holder: string): RoundDeps => ({
    holder,
    store,
    clock,
    connections,
    log: createLogger({ level: 'error', destination: { write: () => undefined }, secrets: createSecretRedactor() }),
    repositoryOf: () => hostedRepository(server),
    tasks: async () =>
      pendingRequests.requests.map((request) =>
        requestTask({ ...PENDING, request, gitOps: pendingRequests.gitOps }, async () => ({
          objects: { tool: TOOL, tools: [TOOL], approvals: material.approvals },
          facts: { verdicts: [], provenance: [] },
        })),
      ),
  });
  const round = (holder = 'one') => pullRequestRound(depsOf(holder), NEVER_ABORTED);
  const states = () =>
    store.document()?.requests.map(({ state, message }) => (message === undefined ? state : message));
  const loseStore = () => {
    store = memoryStore();
  };
  return { clock, holder: () => store.document()?.holder, server, round, states, pendingRequests, loseStore, material };
}

describe('a round over the pull requests of promotions', () => {
  it('a pending request gets one pull request, whose state is read each minute', async () => {
    const { round, states, server, clock } = aFixture();
    await round();
    assert.deepEqual([states(), server.opened.length], [['Open'], 1]);
    assert.equal(server.opened[0]?.branch, 'temper/share-k4q7pWm2Zc8vN1xRt6Yb');
    server.calls.length = 0;
    await round();
    assert.deepEqual(server.calls, [], 'the state is new enough');
    clock.skip(MINUTE_MS);
    server.state = 'Merged';
    await round();
    assert.deepEqual([server.calls, states()], [['get'], ['Merged']]);
  });

  it('another gateway works only when the lease of the first one ends, and opens nothing twice', async () => {
    const { round, server, clock, holder, states } = aFixture();
    await round('one');
    await round('two');
    assert.equal(holder(), 'one');
    clock.skip(2 * MINUTE_MS);
    await round('two');
    assert.deepEqual([holder(), states(), server.opened.length], ['two', ['Open'], 1]);
  });

  it('a gateway that lost its document finds its pull request again', async () => {
    const { round, server, states, loseStore } = aFixture();
    await round();
    loseStore();
    await round();
    assert.deepEqual([states(), server.opened.length, server.comment.length], [['Open'], 1, 1]);
  });

  it('a failure is a state with its cause, and the next minute tries again', async () => {
    const { round, states, server, clock } = aFixture();
    server.problem = new TemperError('TEMPER_CONNECTION_FAILED', 'connection "tools": away\u001b[31m');
    await round();
    assert.deepEqual(states(), ['connection "tools": away\\u{1b}[31m']);
    server.problem = undefined;
    clock.skip(MINUTE_MS);
    await round();
    assert.deepEqual([states(), server.opened.length], [['Open'], 1]);
  });

  it('a policy that names a connection of another namespace, or a branch of another form, is a failure', async () => {
    for (const [gitOps, message] of [
      [{ connection: 'other', branch: 'main', path: 'tools' }, /no connection "other" is configured/],
      [{ connection: 'tools', branch: '--upload-pack=x', path: 'tools' }, /gitOps\.branch/],
      [{ connection: 'tools', branch: 'main', path: '../..' }, /gitOps\.path/],
    ] as const) {
      const { round, states, pendingRequests, server } = aFixture();
      pendingRequests.gitOps = { ...gitOps };
      await round();
      assert.match(states()?.[0] ?? '', message);
      assert.equal(server.opened.length, 0);
    }
  });

  it('a request whose tool is revoked opens no pull request of the revocation', async () => {
    const { round, states, server, material } = aFixture();
    const subject = { promotion: { tool: 'double', digest: DIGEST, tier: 'Shared' } } as const;
    const spec = {
      decision: 'Revoke',
      nonce: 'k4q7pWm2Zc8vN1xRt6Yb',
      approvedBy: { username: 'alice' },
      subject,
    } as const;
    const metadata = { name: 'no-more', namespace: 'team-a', creationTimestamp: '2031-01-01T00:00:00Z' };
    material.approvals = [{ apiVersion: 'temper.dev/v1alpha1', kind: 'Approval', metadata, spec }];
    await round();
    assert.deepEqual([states(), server.opened], [['the tool of the request is revoked'], []]);
  });

  it('a request that is decided or gone leaves the document', async () => {
    const { round, states, pendingRequests, clock } = aFixture([aRequest(), aRequest('another-nonce-0123456789')]);
    await round();
    assert.deepEqual(states(), ['Open', 'Open']);
    pendingRequests.requests.pop();
    clock.skip(MINUTE_MS);
    await round();
    assert.deepEqual(states(), ['Open']);
  });
});
