import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { CallApproval, ErrorBody, PodDelivery } from '../../../../src/gateway-api/pod-api.ts';
import type { GatewayFixture, HttpResponse } from '../../../support/gateway/gateway-fixture.ts';
import { openParkedCalls, parsed } from '../../../support/gateway/parked-call-setup.ts';
import { pollValue } from '../../../support/poll.ts';

/** Walks through the kills in the middle of requests; `make chaos` sets more. */
const TIMES = Number(process.env['KILLS'] ?? 1);

/** The steps of a guarded call. Each of them is made by another replica of the gateway, and by an operator that has just started. */
export function parkedCallTests(open: () => GatewayFixture): void {
  let keys = 0;

  it('a guarded call is requested, parked, approved, resumed and used once, with a killed gateway and NATS at every step', async () => {
    const fixture = open();
    await using setup = await openParkedCalls(fixture, 'parked');
    const { token, uid } = setup;
    const sent = await setup.send('read the note', 's-1');
    assert.equal(sent.waitsFor, undefined);
    const first = await setup.next();

    const asked = await setup.approval(first);
    assert.equal(asked.decision, 'Pending');
    await setup.killServers();
    assert.deepEqual(await setup.approval(first), asked, 'a repeated request is the same request');
    const object = await setup.request(asked.request);
    assert.equal(object.spec.arguments, '{"path":"note.txt","token":"[redacted: a secret]"}');
    assert.deepEqual([object.spec.risk, object.spec.session, object.spec.subject.call?.agentUid], ['low', 's-1', uid]);

    await setup.killServers();
    parsed(await setup.post('/v1/deliveries', park(first, asked.request)), 204);
    const behind = await setup.send('and another thing', 's-1');
    assert.deepEqual(behind.waitsFor, [asked.request]);
    await setup.send('something else', 's-2');
    const other = await setup.next();
    assert.equal(other.message.session, 's-2', 'the agent goes on with other sessions');
    parsed(await setup.post('/v1/deliveries', ack(other)), 204);
    assertError(await setup.use(first, asked.request), 'TEMPER_APPROVAL_DENIED');

    await setup.gateway.kill();
    await fixture.nats.server.restart();
    await setup.approve(object, { argumentsDigest: `sha256:${'0'.repeat(64)}` });
    await setup.approve(object, {}, 'another-nonce-of-16');
    await setup.approve(object);
    await setup.gateway.replace();
    const resumed = await setup.next();
    assert.equal(resumed.message.id, sent.id);
    assert.equal((await setup.approval(resumed)).decision, 'Approve');
    keys += 1;
    const key = `use-${keys}`;
    parsed(await setup.use(resumed, asked.request, key), 204);
    await setup.killServers();
    parsed(await setup.use(resumed, asked.request, key), 204);
    assertError(await setup.use(resumed, asked.request, 'another-attempt'), 'TEMPER_APPROVAL_USED');
    await setup.operatorRound();
    const { status } = await setup.request(asked.request);
    assert.deepEqual([status?.decision, status?.decidedBy], ['Approve', 'temper-admin']);
    assert.ok(status?.usedAt !== undefined);
    await setup.operatorRound();
    assert.deepEqual(await setup.audited(asked.request), [
      'approval.used agent/parked temper-admin',
      'approval.decided user/temper-admin Approve',
    ]);

    parsed(await setup.post('/v1/deliveries', ack(resumed)), 204);
    const last = await setup.next();
    assert.equal(last.message.id, behind.id, 'the message behind the parked one follows');
    const events = await setup.events('s-1');
    assert.deepEqual(
      events.filter((type) => type.startsWith('approval') || type === 'turn-parked'),
      ['approval-requested', 'turn-parked', 'approval-decided'],
    );
    assert.ok(token !== '');
  });

  it('a gateway that is killed in the middle of any request of a parked call loses nothing and does nothing twice', async () => {
    for (let time = 0; time < TIMES; time += 1) {
      await using setup = await openParkedCalls(open(), `killed-${time}`);
      const middle = (time * 7 + 15) % 60;
      const sent = await setup.send('read the note', 's-1');
      const first = await setup.next();
      const asked = parsed(await setup.gateway.interrupted(() => setup.ask(first), middle)) as CallApproval;
      const parking = park(first, asked.request);
      parsed(await setup.gateway.interrupted(() => setup.post('/v1/deliveries', parking), middle), 204);
      await setup.approve(await setup.request(asked.request));
      const resumed = await setup.next();
      assert.equal(resumed.message.id, sent.id);
      const repeated = parsed(await setup.gateway.interrupted(() => setup.ask(resumed), middle)) as CallApproval;
      assert.deepEqual([repeated.request, repeated.decision], [asked.request, 'Approve']);
      const key = `${setup.uid}-attempt`;
      parsed(await setup.gateway.interrupted(() => setup.use(resumed, asked.request, key), middle), 204);
      assertError(await setup.use(resumed, asked.request, `${key}-2`), 'TEMPER_APPROVAL_USED');
      await setup.gateway.interrupted(() => setup.post('/v1/deliveries', ack(resumed)), middle);
      await pollValue(
        'one reply',
        () => setup.lines('s-1'),
        (lines) => lines.filter(({ kind }) => kind === 'reply').length === 1,
      );
      const events = (await setup.events('s-1')).filter(
        (type) => type.startsWith('approval') || type === 'turn-parked',
      );
      assert.deepEqual(events, ['approval-requested', 'turn-parked', 'approval-decided']);
      const empty = await setup.post('/v1/messages/next', { waitSeconds: 1 });
      assert.equal(empty.status, 204, 'the message is not delivered again');
    }
  });

  it('an approval for the call of one session never lets the same call of another session pass, whose message is in work beside it', async () => {
    await using setup = await openParkedCalls(open(), 'beside');
    const next = async (session: string): Promise<PodDelivery> => {
      await setup.send('go', session);
      const delivery = await setup.next();
      assert.equal(delivery.message.session, session);
      return delivery;
    };
    const [one, other] = [await next('s-1'), await next('s-2')];
    const message = { tool: 'agent_send', input: { to: 'beside', session: 'x', text: 'hello' }, callKey: 'k-send' };
    const send = ({ deliveryToken }: PodDelivery, key: string): Promise<HttpResponse> =>
      setup.post('/v1/messages', { deliveryToken, draft: message.input }, key);
    const [asked, beside] = [await setup.approval(one, message), await setup.approval(other, message)];
    assert.notEqual(asked.request, beside.request);
    await setup.approve(await setup.request(asked.request));
    await pollValue(
      'the approval',
      () => setup.approval(one, message),
      ({ decision }) => decision === 'Approve',
    );
    assert.equal((await setup.approval(other, message)).decision, 'Pending');
    assertError(await setup.use(other, asked.request, 'use-1'), 'TEMPER_NOT_FOUND');
    assertError(await setup.use(other, beside.request, 'use-2'), 'TEMPER_APPROVAL_DENIED');
    parsed(await setup.use(one, asked.request, 'use-3'), 204);
    assertError(await send(other, 'send-2'), 'TEMPER_POLICY_DENIED');
    parsed(await send(one, 'send-1'), 200);
    assertError(await send(other, 'send-3'), 'TEMPER_POLICY_DENIED');
  });

  it('a parked call of low risk resumes by the timeout of its policy, which approves it in its own name', async () => {
    const byRisk = [{ risk: 'low' as const, timeout: '2s', onTimeout: 'Approve' as const }];
    await using setup = await openParkedCalls(open(), 'approved-late', { byRisk });
    const sent = await setup.send('read the note', 's-1');
    const first = await setup.next();
    const asked = await setup.approval(first);
    parsed(await setup.post('/v1/deliveries', park(first, asked.request)), 204);
    const resumed = await setup.next();
    assert.equal(resumed.message.id, sent.id);
    const decided = await setup.approval(resumed);
    assert.deepEqual([decided.decision, decided.by], ['Approve', 'policy']);
    parsed(await setup.use(resumed, asked.request), 204);
    assertError(await setup.use(resumed, asked.request, 'another-attempt'), 'TEMPER_APPROVAL_USED');
    const { status } = await setup.request(asked.request);
    assert.deepEqual([status?.decision, status?.decidedBy], ['Approve', 'policy']);
    assert.ok(status?.usedAt !== undefined);
    parsed(await setup.post('/v1/deliveries', ack(resumed)), 204);
    await setup.operatorRound();
    assert.equal(
      (await setup.request(asked.request)).status?.decision,
      'Approve',
      'the end of the message changes nothing',
    );
    assert.deepEqual(await setup.audited(asked.request), [
      'approval.used agent/approved-late policy',
      'approval.decided policy Approve',
    ]);
  });

  it('a parked call resumes by the timeout that denies it, and an Approval that comes later permits nothing', async () => {
    await using setup = await openParkedCalls(open(), 'denied-late', { timeout: '2s', onTimeout: 'Deny' });
    const sent = await setup.send('read the note', 's-1');
    const first = await setup.next();
    const asked = await setup.approval(first);
    const object = await setup.request(asked.request);
    parsed(await setup.post('/v1/deliveries', park(first, asked.request)), 204);
    const resumed = await setup.next();
    assert.equal(resumed.message.id, sent.id);
    const decided = await setup.approval(resumed);
    assert.deepEqual([decided.decision, decided.by], ['Expired', 'policy']);
    await setup.approve(object);
    await setup.gateway.replace();
    assert.equal((await setup.approval(resumed)).decision, 'Expired');
    assertError(await setup.use(resumed, asked.request), 'TEMPER_APPROVAL_DENIED');
    const { status } = await setup.request(asked.request);
    assert.deepEqual([status?.decision, status?.decidedBy, status?.usedAt], ['Expired', 'policy', undefined]);
    assert.deepEqual(await setup.audited(asked.request), ['approval.decided policy Expired']);
  });

  it('a denied call resumes with the denial, an agent has at most five requests, and a call of the gateway itself needs its own use', async () => {
    await using setup = await openParkedCalls(open(), 'denied');
    await setup.send('go', 's-1');
    const delivery = await setup.next();
    const requests: string[] = [];
    for (let index = 0; index < 5; index += 1) {
      const { request } = await setup.approval(delivery, { input: { path: `${index}.txt` }, callKey: `k-${index}` });
      requests.push(request);
    }
    const sixth = await setup.ask(delivery, { input: { path: '6.txt' }, callKey: 'k-6' });
    assertError(sixth, 'TEMPER_QUOTA_EXCEEDED');
    const [request = ''] = requests;
    parsed(await setup.post('/v1/deliveries', park(delivery, request)), 204);
    await setup.approve(await setup.request(request), {}, undefined, 'Deny');
    const resumed = await setup.next();
    assert.equal((await setup.approval(resumed, { input: { path: '0.txt' }, callKey: 'k-0' })).decision, 'Deny');
    assertError(await setup.use(resumed, request), 'TEMPER_APPROVAL_DENIED');

    const draft = { to: 'denied', session: 's-1', text: 'hello' };
    const message = { tool: 'agent_send', input: { to: 'denied', text: 'hello' }, callKey: 'k-send' };
    const send = (text: string, key: string): Promise<HttpResponse> =>
      setup.post('/v1/messages', { deliveryToken: resumed.deliveryToken, draft: { ...draft, text } }, key);
    assertError(await send('hello', 'send-1'), 'TEMPER_POLICY_DENIED');
    const asked = await setup.approval(resumed, message);
    await setup.approve(await setup.request(asked.request));
    await pollValue(
      'the approval',
      () => setup.approval(resumed, message),
      ({ decision }) => decision === 'Approve',
    );
    assertError(await send('hello', 'send-1'), 'TEMPER_POLICY_DENIED');
    parsed(await setup.use(resumed, asked.request), 204);
    assertError(await send('something else', 'send-1'), 'TEMPER_POLICY_DENIED');
    parsed(await send('hello', 'send-1'), 200);
    parsed(await send('hello', 'send-1'), 200);
    assertError(await send('hello', 'send-2'), 'TEMPER_POLICY_DENIED');
  });
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
