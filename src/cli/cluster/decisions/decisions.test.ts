import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTemperError } from '../../../lib/errors.ts';
import { anArtifact } from '../../../tempering/tempering.testing.ts';
import { artifactDigest } from '../../../tempering/registry/serialization.ts';
import { type FakeResponse, fakeCluster, type RecordedRequest } from '../api-server.testing.ts';
import { aTerminal } from '../../io.testing.ts';
import { decide } from './decide.ts';
import { demote } from './demote.ts';
import { clusterDescribe } from '../verbs/describe.ts';

const GROUP = '/apis/temper.dev/v1alpha1/namespaces/team-a';
const artifact = anArtifact('csv_rows');
const digest = artifactDigest(artifact);
const NONCE = 'k4q7pWm2Zc8vN1xRt6Yb';
const subject = { promotion: { tool: 'csv_rows', digest, tier: 'Shared' } };
const request = (status: object = {}) => ({
  apiVersion: 'temper.dev/v1alpha1',
  kind: 'ApprovalRequest',
  metadata: { name: 'csv-rows-1', namespace: 'team-a', resourceVersion: '1', uid: 'u-1' },
  spec: {
    type: 'PromoteTool',
    agent: { name: 'analyst', uid: 'u' },
    nonce: NONCE,
    summary: 'csv_rows asks to be shared.',
    risk: 'medium',
    subject,
  },
  status,
});
const tool = (name: string, change: object = {}) => ({
  apiVersion: 'temper.dev/v1alpha1',
  kind: 'EmergentTool',
  metadata: { name, namespace: 'team-a', resourceVersion: '1', uid: name },
  spec: { artifact, digest, tier: 'Agent', ...change },
});

/** A cluster whose user is alice; `more` is asked first. */
function aCluster(more: (request: RecordedRequest) => FakeResponse, uid?: string) {
  return fakeCluster((received) => {
    const found = more(received);
    if (found !== undefined) return found;
    if (received.path.endsWith('/selfsubjectreviews'))
      return {
        status: 201,
        body: { status: { userInfo: { username: 'alice@example.com', ...(uid === undefined ? {} : { uid }) } } },
      };
    if (received.method === 'POST' && received.path.startsWith(`${GROUP}/approvals`))
      return { status: 201, body: { metadata: { name: 'created' } } };
    return undefined;
  });
}

const createdIn = (requests: readonly RecordedRequest[]) =>
  requests.find(({ method, path }) => method === 'POST' && path.startsWith(`${GROUP}/approvals`))?.body;
const listOf = (...items: object[]): FakeResponse => ({
  status: 200,
  body: { kind: 'List', metadata: { resourceVersion: '1' }, items },
});

describe('the verbs for decisions on a cluster', () => {
  it('an approval is an Approval of the subject and nonce of the request, in the name of the caller', async () => {
    await using cluster = await aCluster(({ path }) =>
      path === `${GROUP}/approvalrequests/csv-rows-1` ? { status: 200, body: request() } : undefined,
    );
    const io = aTerminal();
    const options = { request: 'csv-rows-1', reason: 'a pure parser', output: 'text' as const };
    await decide({ ...options, decision: 'Approve', kubeconfig: cluster.kubeconfig }, io);
    assert.deepEqual(createdIn(cluster.requests), {
      apiVersion: 'temper.dev/v1alpha1',
      kind: 'Approval',
      metadata: { name: 'csv-rows-1-alice', namespace: 'team-a' },
      spec: {
        decision: 'Approve',
        nonce: NONCE,
        request: 'csv-rows-1',
        reason: 'a pure parser',
        subject,
        approvedBy: { username: 'alice@example.com' },
      },
    });
    assert.match(
      io.printed(),
      /^approval\/csv-rows-1-alice created in prod\/team-a \(digest sha256:\w{8}…\) · tool becomes Shared in team-a\n$/,
    );
  });

  it('the uid of the caller is part of the Approval when the API server has one, and JSON output has the subject', async () => {
    await using cluster = await aCluster(
      ({ path }) => (path === `${GROUP}/approvalrequests/csv-rows-1` ? { status: 200, body: request() } : undefined),
      'uid-1',
    );
    const io = aTerminal();
    const options = { request: 'csv-rows-1', reason: 'no', output: 'json' as const };
    await decide({ ...options, decision: 'Deny', kubeconfig: cluster.kubeconfig }, io);
    const created = createdIn(cluster.requests) as { spec: { approvedBy: object } };
    assert.deepEqual(created.spec.approvedBy, { username: 'alice@example.com', uid: 'uid-1' });
    const printed = JSON.parse(io.printed()) as object;
    assert.deepEqual(printed, {
      approval: 'csv-rows-1-alice-deny',
      decision: 'Deny',
      location: 'prod/team-a',
      subject,
    });
  });

  it('a decided request, a missing one and a repeated decision are errors that say so', async () => {
    await using cluster = await aCluster(({ method, path }) => {
      if (path.endsWith('/approvalrequests/decided'))
        return { status: 200, body: request({ decision: 'Deny', decidedBy: 'bob\u001b[2J' }) };
      if (path.endsWith('/approvalrequests/again')) return { status: 200, body: request() };
      if (method === 'POST' && path.startsWith(`${GROUP}/approvals`))
        return { status: 409, body: { kind: 'Status', reason: 'AlreadyExists', message: 'exists' } };
      return undefined;
    });
    const options = {
      decision: 'Approve' as const,
      reason: 'x',
      output: 'text' as const,
      kubeconfig: cluster.kubeconfig,
    };
    const refused = async (name: string, code: 'TEMPER_USAGE' | 'TEMPER_NOT_FOUND', message: RegExp) =>
      assert.rejects(decide({ ...options, request: name }, aTerminal()), (error) => {
        assert.ok(isTemperError(error, code), String(error));
        assert.match(error.message, message);
        return true;
      });
    await refused('decided', 'TEMPER_USAGE', /already decided: Deny by bob\\u\{1b\}/);
    await refused('missing', 'TEMPER_NOT_FOUND', /no approvalrequest "missing" in prod\/team-a/);
    await refused('again', 'TEMPER_USAGE', /you decided this before/);
  });

  it('a demotion revokes the Shared object of a tool, whose nonce ends the approval in Git', async () => {
    const shared = tool('csv-rows-shared', { tier: 'Shared', requestNonce: NONCE });
    await using cluster = await aCluster(({ method, path }) =>
      method === 'GET' && path.startsWith(`${GROUP}/emergenttools`) ? listOf(tool('csv-rows-own'), shared) : undefined,
    );
    const io = aTerminal();
    await demote({ tool: 'csv_rows', reason: 'wrong', output: 'text', kubeconfig: cluster.kubeconfig }, io);
    const created = createdIn(cluster.requests) as { metadata: object; spec: object };
    assert.deepEqual(created.spec, {
      decision: 'Revoke',
      nonce: NONCE,
      reason: 'wrong',
      subject,
      approvedBy: { username: 'alice@example.com' },
    });
    assert.match(io.printed(), /csv_rows leaves service in team-a/);
  });

  it('a name with several versions is an error that names the objects', async () => {
    const other = anArtifact('csv_rows', { description: 'Other.' });
    const second = tool('csv-rows-second', { artifact: other, digest: artifactDigest(other) });
    await using cluster = await aCluster(({ method, path }) =>
      method === 'GET' && path.startsWith(`${GROUP}/emergenttools`) ? listOf(tool('csv-rows-own'), second) : undefined,
    );
    const options = { reason: 'wrong', output: 'text' as const, kubeconfig: cluster.kubeconfig };
    await assert.rejects(demote({ ...options, tool: 'csv_rows' }, aTerminal()), /csv-rows-own, csv-rows-second/);
    await demote({ ...options, tool: 'csv-rows-second' }, aTerminal());
    await assert.rejects(demote({ ...options, tool: 'unknown' }, aTerminal()), /no tool "unknown"/);
  });

  it('an approval first shows the difference to the version that the tool replaces, in text and not in JSON', async () => {
    const before = anArtifact('csv_rows', {
      implementation: { mode: 'Sandbox', source: 'function execute() { return {}; }' },
    });
    const replaced = { ...tool('csv-rows-old', { artifact: before, digest: artifactDigest(before), tier: 'Shared' }) };
    const review = { replaces: { object: 'csv-rows-old', digest: artifactDigest(before) }, agents: [] };
    const asked = { ...request(), spec: { ...request().spec, review } };
    const printedFor = async (output: 'text' | 'json', colour: boolean, mayRead = true) => {
      await using cluster = await aCluster(({ method, path }) => {
        if (path === `${GROUP}/approvalrequests/csv-rows-1`) return { status: 200, body: asked };
        if (method !== 'GET') return undefined;
        if (!mayRead) return { status: 403, body: { kind: 'Status', reason: 'Forbidden', message: 'no' } };
        return path.startsWith(`${GROUP}/emergenttools`) ? listOf(tool('csv-rows-own'), replaced) : listOf();
      });
      const io = { ...aTerminal(), colour };
      const options = { request: 'csv-rows-1', reason: 'ok', output, kubeconfig: cluster.kubeconfig };
      await decide({ ...options, decision: 'Approve' }, io);
      assert.ok(createdIn(cluster.requests) !== undefined);
      return io;
    };
    assert.match((await printedFor('text', false)).printed(), /^- │ function execute\(\) \{ return \{\}; \}$/m);
    // oxlint-disable-next-line no-control-regex -- colour sequences start with ESC
    assert.match((await printedFor('text', true)).printed(), /\u001b\[31m-/);
    assert.doesNotMatch((await printedFor('json', true)).printed(), /execute/);
    assert.match((await printedFor('text', false, false)).errors(), /^note: the difference .* cannot be shown/);
  });

  it('the description of a request shows the source of the tool and its difference to the version that it replaces', async () => {
    const before = anArtifact('csv_rows', {
      implementation: { mode: 'Sandbox', source: 'function execute() { return {}; }' },
    });
    const spec = { artifact: before, digest: artifactDigest(before), tier: 'Shared' };
    const earlier = { ...tool('csv-rows-old', spec), status: { active: true } };
    await using cluster = await aCluster(({ path }) => {
      if (path === `${GROUP}/approvalrequests/csv-rows-1`) return { status: 200, body: request() };
      if (path.startsWith(`${GROUP}/emergenttools`)) return listOf(tool('csv-rows-own'), earlier);
      if (path.startsWith(`${GROUP}/approvals`) || path.includes('/events')) return listOf();
      return undefined;
    });
    const io = aTerminal();
    await clusterDescribe({ targets: ['request', 'csv-rows-1'], output: 'text', kubeconfig: cluster.kubeconfig }, io);
    assert.match(io.printed(), /input\.value \* 2/);
    assert.match(io.printed(), /function execute\(\) \{ return \{\}; \}/);
  });
});
