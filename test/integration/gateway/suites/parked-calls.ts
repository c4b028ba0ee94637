import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { ApprovalRequest } from '../../../../src/api/v1alpha1/approvalrequest.ts';
import type { CallApproval, ErrorBody, PodDelivery } from '../../../../src/gateway-api/pod-api.ts';
import type { SessionStreamLine, UserMessageReceipt } from '../../../../src/gateway-api/user-api.ts';
import { loadClusterAccess } from '../../../../src/kube/client/cluster-access.ts';
import { createTransport } from '../../../../src/kube/client/transport.ts';
import { NO_METRICS } from '../../../support/stubs.ts';
import { createKubeClient } from '../../../../src/kube/client/http-kube-client.ts';
import { systemClock } from '../../../../src/lib/clock.ts';
import { CallRequests } from '../../../../src/operator/calls/call-requests.ts';
import type { StoredAgent } from '../../../../src/operator/kube/types.ts';
import { natsPendingCalls } from '../../../../src/operator/nats/sources/pending-call-source.ts';
import { createLogger } from '../../../../src/telemetry/log.ts';
import { createSecretRedactor } from '../../../../src/telemetry/secret-redactor.ts';
import type { GatewayFixture, GatewayReplica, HttpResponse } from '../../../support/gateway/gateway-fixture.ts';
import { pollValue } from '../../../support/poll.ts';

const GROUP = '/apis/temper.dev/v1alpha1/namespaces/team-a';
const MESSAGES = '/v1/users/namespaces/team-a/agents';
const GUARDED = { rules: { requireApproval: ['code:read', 'comms:internal'] }, tools: { allow: ['*'] } };
const CALL = { tool: 'file_read', input: { path: 'note.txt', token: 'glpat-secret' }, callKey: 's-1/0/1/call-0' };

/** The steps of a guarded call. Each of them is made by another replica of the gateway, and by an operator that has just started. */
export function parkedCallTests(open: () => GatewayFixture): void {
  let keys = 0;

  it('a guarded call is requested, parked, approved, resumed and used once, with a new gateway at every step', async () => {
    const fixture = open();
    await using world = await openWorld(fixture, 'parked');
    const { token, uid } = world;
    const sent = await world.send('read the note', 's-1');
    assert.equal(sent.waitsFor, undefined);
    const first = await world.next();

    const asked = await world.approval(first);
    assert.equal(asked.decision, 'Pending');
    await world.replaceGateway();
    assert.deepEqual(await world.approval(first), asked, 'a repeated request is the same request');
    const object = await world.request(asked.request);
    assert.equal(object.spec.arguments, '{"path":"note.txt","token":"[redacted: a secret]"}');
    assert.deepEqual([object.spec.risk, object.spec.session, object.spec.subject.call?.agentUid], ['low', 's-1', uid]);

    await world.replaceGateway();
    parsed(await world.post('/v1/deliveries', park(first, asked.request)), 204);
    const behind = await world.send('and another thing', 's-1');
    assert.deepEqual(behind.waitsFor, [asked.request]);
    await world.send('something else', 's-2');
    const other = await world.next();
    assert.equal(other.message.session, 's-2', 'the agent goes on with other sessions');
    parsed(await world.post('/v1/deliveries', ack(other)), 204);
    assertError(await world.use(first, asked.request), 'TEMPER_APPROVAL_DENIED');

    await world.stopGateway();
    await world.approve(object, { argumentsDigest: `sha256:${'0'.repeat(64)}` });
    await world.approve(object, {}, 'another-nonce-of-16');
    await world.approve(object);
    await world.replaceGateway();
    const resumed = await world.next();
    assert.equal(resumed.message.id, sent.id);
    assert.equal((await world.approval(resumed)).decision, 'Approve');
    keys += 1;
    const key = `use-${keys}`;
    parsed(await world.use(resumed, asked.request, key), 204);
    await world.replaceGateway();
    parsed(await world.use(resumed, asked.request, key), 204);
    assertError(await world.use(resumed, asked.request, 'another-attempt'), 'TEMPER_APPROVAL_USED');
    await world.operatorRound();
    const { status } = await world.request(asked.request);
    assert.deepEqual([status?.decision, status?.decidedBy], ['Approve', 'temper-admin']);
    assert.ok(status?.usedAt !== undefined);

    parsed(await world.post('/v1/deliveries', ack(resumed)), 204);
    const last = await world.next();
    assert.equal(last.message.id, behind.id, 'the message behind the parked one follows');
    const events = await world.events('s-1');
    assert.deepEqual(
      events.filter((type) => type.startsWith('approval') || type === 'turn-parked'),
      ['approval-requested', 'turn-parked', 'approval-decided'],
    );
    assert.ok(token !== '');
  });

  it('a denied call resumes with the denial, an agent has at most five requests, and a call of the gateway itself needs its own use', async () => {
    await using world = await openWorld(open(), 'denied');
    await world.send('go', 's-1');
    const delivery = await world.next();
    const requests: string[] = [];
    for (let index = 0; index < 5; index += 1) {
      const { request } = await world.approval(delivery, { input: { path: `${index}.txt` }, callKey: `k-${index}` });
      requests.push(request);
    }
    const sixth = await world.ask(delivery, { input: { path: '6.txt' }, callKey: 'k-6' });
    assertError(sixth, 'TEMPER_QUOTA_EXCEEDED');
    const [request = ''] = requests;
    parsed(await world.post('/v1/deliveries', park(delivery, request)), 204);
    await world.approve(await world.request(request), {}, undefined, 'Deny');
    const resumed = await world.next();
    assert.equal((await world.approval(resumed, { input: { path: '0.txt' }, callKey: 'k-0' })).decision, 'Deny');
    assertError(await world.use(resumed, request), 'TEMPER_APPROVAL_DENIED');

    const draft = { to: 'denied', session: 's-1', text: 'hello' };
    const message = { tool: 'agent_send', input: { to: 'denied', text: 'hello' }, callKey: 'k-send' };
    const send = (text: string, key: string): Promise<HttpResponse> =>
      world.post('/v1/messages', { deliveryToken: resumed.deliveryToken, draft: { ...draft, text } }, key);
    assertError(await send('hello', 'send-1'), 'TEMPER_POLICY_DENIED');
    const asked = await world.approval(resumed, message);
    await world.approve(await world.request(asked.request));
    await pollValue(
      'the approval',
      () => world.approval(resumed, message),
      ({ decision }) => decision === 'Approve',
    );
    assertError(await send('hello', 'send-1'), 'TEMPER_POLICY_DENIED');
    parsed(await world.use(resumed, asked.request), 204);
    assertError(await send('something else', 'send-1'), 'TEMPER_POLICY_DENIED');
    parsed(await send('hello', 'send-1'), 200);
    parsed(await send('hello', 'send-1'), 200);
    assertError(await send('hello', 'send-2'), 'TEMPER_POLICY_DENIED');
  });
}

function parsed({ text, status }: HttpResponse, expected = 200): unknown {
  assert.equal(status, expected, text);
  return text === '' ? undefined : JSON.parse(text);
}

function assertError({ text }: HttpResponse, code: string): void {
  assert.equal((JSON.parse(text) as ErrorBody).error?.code, code, text);
}

const park = ({ deliveryToken }: PodDelivery, request: string) => ({
  deliveryToken,
  action: 'park',
  requests: [request],
});
const ack = ({ deliveryToken }: PodDelivery) => ({
  deliveryToken,
  action: 'ack',
  reply: 'done',
  finishReason: 'complete',
});

/** An agent under a policy that escalates its calls, its pod, its user, and an operator that has just started at each round. */
async function openWorld(fixture: GatewayFixture, name: string) {
  await using opening = new AsyncDisposableStack();
  await fixture.createPolicy('team-a', `guarded-${name}`, GUARDED);
  const spec = { trustPolicyRef: { name: `guarded-${name}` }, grants: { tools: ['*'], messages: ['*'] } };
  const { token, uid } = await fixture.createRunningAgent('team-a', name, spec);
  const userToken = await fixture.createUserToken('team-a');
  const bus = await fixture.nats.connect('operator');
  let gateway: GatewayReplica | undefined;
  let keys = 0;
  opening.defer(() => gateway?.stop());
  const log = createLogger({
    level: 'error',
    destination: { write: () => undefined },
    secrets: createSecretRedactor(),
  });
  const access = await loadClusterAccess({ kind: 'file', path: fixture.plane.kubeconfig }, systemClock);
  const transport = opening.use(createTransport({ access, clock: systemClock, metrics: NO_METRICS }));
  const client = createKubeClient(transport);
  const signal = new AbortController().signal;
  const agent = { apiVersion: 'temper.dev/v1alpha1', kind: 'Agent', metadata: { namespace: 'team-a', name, uid } };
  const replica = (): GatewayReplica => {
    assert.ok(gateway !== undefined);
    return gateway;
  };
  const world = {
    token,
    uid,
    async stopGateway(): Promise<void> {
      await gateway?.stop();
      gateway = undefined;
    },
    async replaceGateway(): Promise<void> {
      await world.stopGateway();
      gateway = await fixture.startReplica();
    },
    post(path: string, body: object, key?: string): Promise<HttpResponse> {
      return replica().call('POST', path, { token, body, ...(key === undefined ? {} : { key }) });
    },
    async send(text: string, session: string): Promise<UserMessageReceipt> {
      keys += 1;
      const sent = await replica().call('POST', `${MESSAGES}/${name}/messages`, {
        userToken,
        key: `${name}-${keys}`,
        body: { text, session },
      });
      return parsed(sent) as UserMessageReceipt;
    },
    async next(): Promise<PodDelivery> {
      const answer = await world.post('/v1/messages/next', { waitSeconds: 20 });
      return parsed(answer) as PodDelivery;
    },
    ask({ deliveryToken }: PodDelivery, change: object = {}): Promise<HttpResponse> {
      return world.post('/v1/approvals', { deliveryToken, ...CALL, ...change });
    },
    async approval(delivery: PodDelivery, change: object = {}): Promise<CallApproval> {
      return parsed(await world.ask(delivery, change)) as CallApproval;
    },
    use({ deliveryToken }: PodDelivery, request: string, key = 'one-attempt'): Promise<HttpResponse> {
      return world.post('/v1/approvals/use', { deliveryToken, request }, key);
    },
    async operatorRound(): Promise<void> {
      const events = { record: () => undefined, [Symbol.asyncDispose]: async () => undefined };
      const source = natsPendingCalls({ current: () => bus });
      const own = (agentUid: string) => (agentUid === uid ? (agent as unknown as StoredAgent) : undefined);
      const deps = { source, agent: own, client, events, clock: systemClock, log };
      await new CallRequests(deps).round(signal);
    },
    async request(request: string): Promise<ApprovalRequest> {
      await world.operatorRound();
      const { status, body } = await fixture.plane.admin.call('GET', `${GROUP}/approvalrequests/${request}`);
      assert.equal(status, 200, JSON.stringify(body));
      return body as unknown as ApprovalRequest;
    },
    async approve({ metadata, spec }: ApprovalRequest, call: object = {}, nonce = spec.nonce, decision = 'Approve') {
      keys += 1;
      await fixture.create(`${GROUP}/approvals`, {
        apiVersion: 'temper.dev/v1alpha1',
        kind: 'Approval',
        metadata: { name: `${metadata.name}-${keys}` },
        spec: {
          decision,
          nonce,
          request: metadata.name,
          approvedBy: { username: 'temper-admin' },
          subject: { call: { ...spec.subject.call, ...call } },
        },
      });
    },
    async events(session: string): Promise<string[]> {
      const path = `${MESSAGES}/${name}/sessions/${session}/events`;
      const { text } = await replica().call('GET', path, { userToken });
      const lines = text.split('\n').filter((line) => line !== '');
      return lines
        .map((line) => JSON.parse(line) as SessionStreamLine)
        .flatMap((line) => ('event' in line ? [line.event.type] : []));
    },
  };
  await world.replaceGateway();
  await pollValue(
    `the gateway to know agent ${name}`,
    async () => (await replica().call('GET', '/v1/assignment', { token })).status,
    (value) => value === 200,
  );
  const open = opening.move();
  return { ...world, [Symbol.asyncDispose]: () => open.disposeAsync() };
}
