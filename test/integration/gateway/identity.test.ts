import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { ErrorCode } from '../../../src/lib/error-codes.ts';
import type { AuditPage } from '../../../src/gateway-api/user-api.ts';
import { createNatsAudit } from '../../../src/nats/audit.ts';
import type { ErrorBody } from '../../../src/gateway-api/pod-api.ts';
import { GatewayFixture, type HttpResponse, type GatewayReplica } from '../../support/gateway/gateway-fixture.ts';
import { MessageClient } from '../../support/gateway/message-client.ts';
import { poll, pollValue } from '../../support/poll.ts';
import { a2aTests } from './suites/a2a.ts';

const ASSIGNMENT = '/v1/assignment';
const NEXT = '/v1/messages/next';
const USER_ROUTE = '/v1/users/namespaces/team-a/top';

function codeOf({ text }: HttpResponse): ErrorCode | undefined {
  return text === '' ? undefined : (JSON.parse(text) as Partial<ErrorBody>).error?.code;
}

describe('authentication at the gateway with tokens of a real API server', () => {
  let fixture: GatewayFixture;
  let gateway: GatewayReplica;
  let scout: Awaited<ReturnType<GatewayFixture['createRunningAgent']>>;

  before(async () => {
    fixture = await GatewayFixture.open(['team-a', 'team-b']);
    scout = await fixture.createRunningAgent('team-a', 'scout');
    gateway = await fixture.startReplica();
  });
  after(async () => {
    await fixture?.[Symbol.asyncDispose]();
  });

  let messages: Promise<MessageClient> | undefined;
  const openMessages = async (): Promise<MessageClient> => {
    const [other, userToken] = await Promise.all([fixture.startReplica(), fixture.createUserToken('team-a')]);
    return new MessageClient({ fixture, one: gateway, other, userToken });
  };

  const assertRejected = async (
    code: ErrorCode,
    path: string,
    options: Parameters<GatewayReplica['call']>[2],
  ): Promise<void> => {
    const post = path === NEXT ? { body: { waitSeconds: 0 } } : {};
    const answer = await gateway.call(path === NEXT ? 'POST' : 'GET', path, { ...post, ...options });
    assert.equal(codeOf(answer), code, answer.text);
  };

  it('the bound pod of an agent is authenticated as that agent', async () => {
    const answer = await gateway.call('GET', ASSIGNMENT, { token: scout.token });
    assert.equal(answer.status, 200, answer.text);
    const { agent, policy, level, version } = JSON.parse(answer.text) as Record<string, unknown>;
    assert.deepEqual(
      [(agent as { uid: string }).uid, (policy as { name: string }).name, level, typeof version],
      [scout.uid, 'standard', 'sandboxed', 'string'],
    );
    assert.equal((await gateway.call('POST', NEXT, { token: scout.token, body: { waitSeconds: 0 } })).status, 204);
  });

  it('a token is rejected from another address', async () => {
    await assertRejected('TEMPER_POD_ADDRESS_MISMATCH', ASSIGNMENT, { token: scout.token, localAddress: '127.0.0.2' });
    await assertRejected('TEMPER_POD_ADDRESS_MISMATCH', NEXT, { token: scout.token, localAddress: '127.0.0.2' });
  });

  it('a token with a wrong audience, lifetime, account, binding or signature is rejected', async () => {
    const { pod } = scout;
    const audience = (audiences: string[]) => fixture.createPodToken('team-a', pod, { audiences });
    await assertRejected('TEMPER_TOKEN_AUDIENCE', ASSIGNMENT, { token: await audience(['temper-egress']) });
    await assertRejected('TEMPER_TOKEN_AUDIENCE', ASSIGNMENT, {
      token: await audience(['temper-gateway', 'temper-egress']),
    });
    const own = ['https://kubernetes.default.svc'];
    await assertRejected('TEMPER_TOKEN_AUDIENCE', ASSIGNMENT, { token: await audience(own) });
    const long = await fixture.createPodToken('team-a', pod, { expirationSeconds: 7_200 });
    await assertRejected('TEMPER_TOKEN_INVALID', ASSIGNMENT, { token: long });
    const unbound = await fixture.createToken('team-a', 'temper-agent');
    await assertRejected('TEMPER_TOKEN_INVALID', ASSIGNMENT, { token: unbound });
    await assertRejected('TEMPER_TOKEN_INVALID', ASSIGNMENT, { token: await fixture.createToken('team-a', 'other') });
    await assertRejected('TEMPER_TOKEN_INVALID', ASSIGNMENT, { token: await fixture.createUserToken('team-a') });
    const [header, payload, signature = ''] = scout.token.split('.');
    const altered = `${header}.${payload}.${signature.slice(0, -8)}AAAAAAAA`;
    await assertRejected('TEMPER_TOKEN_INVALID', ASSIGNMENT, { token: altered });
    await assertRejected('TEMPER_TOKEN_INVALID', ASSIGNMENT, {});
    await assertRejected('TEMPER_TOKEN_INVALID', ASSIGNMENT, { userToken: scout.token });
  });

  it('a user needs a token of their namespace, and is never authenticated as an agent', async () => {
    const userToken = await fixture.createUserToken('team-a');
    await assertRejected('TEMPER_TOKEN_INVALID', USER_ROUTE, { token: userToken });
    await assertRejected('TEMPER_TOKEN_INVALID', USER_ROUTE, { userToken: scout.token });
    await assertRejected('TEMPER_POLICY_DENIED', USER_ROUTE, { userToken: await fixture.createUserToken('team-b') });
    const agents = await gateway.call('GET', '/v1/users/namespaces/team-a/deadletters', { userToken });
    assert.deepEqual([agents.status, agents.text], [200, '[]']);
  });

  it('a user reads the records of the own namespace, and bare digests of the others', async () => {
    const userToken = await fixture.createUserToken('team-a');
    const connection = await fixture.nats.connect('gateway');
    for (const [namespace, subject] of [
      ['team-a', 'of-team-a'],
      ['team-b', 'of-team-b'],
    ] as const)
      await createNatsAudit(connection).append(
        { namespace, agentUid: '' },
        { action: 'tool.verified', actor: 'system', evidence: 'observed', subject, facts: {} },
      );
    const path = '/v1/users/namespaces/team-a/audit';
    const { text, status } = await gateway.call('GET', path, { userToken });
    assert.equal(status, 200);
    const { links, lastSequence } = JSON.parse(text) as AuditPage;
    const at = links.findIndex(({ record }) => record?.data.includes('"subject":"of-team-a"'));
    const [own, foreign] = [links[at], links[at + 1]];
    assert.equal(own?.record?.subject, 'temper.audit.team-a');
    assert.deepEqual(Object.keys(foreign ?? {}).sort(), ['leaf', 'seq']);
    assert.doesNotMatch(text, /team-b/);
    const rest = JSON.parse(
      (await gateway.call('GET', `${path}?after=${lastSequence}`, { userToken })).text,
    ) as AuditPage;
    assert.deepEqual(rest.links, []);
    assert.equal((await gateway.call('GET', `${path}?limit=1001`, { userToken })).status, 400);
    assert.equal((await gateway.call('GET', path.replace('team-a', 'team-b'), { userToken })).status, 403);
    assert.equal((await gateway.call('GET', path, { token: scout.token })).status, 401);
  });

  it('a warm pod may only wait for its assignment, and receives it once it is bound', async () => {
    const pod = await fixture.createPod('team-a', 'warm-1');
    const token = await fixture.createPodToken('team-a', pod);
    await pollValue(
      'the gateway to know the warm pod',
      async () => (await gateway.call('GET', ASSIGNMENT, { token })).status,
      (value) => value === 204,
    );
    await assertRejected('TEMPER_POD_NOT_BOUND', NEXT, { token });
    const waiting = gateway.call('GET', `${ASSIGNMENT}?wait=60`, { token });
    await fixture.createAgent('team-a', 'late');
    // The pod alone binds it; the status confirms it later.
    await fixture.claimPod('team-a', 'late', pod);
    const answer = await waiting;
    assert.equal(answer.status, 200, answer.text);
    const { agent, version } = JSON.parse(answer.text) as { agent: { name: string }; version: string };
    assert.equal(agent.name, 'late');
    const changed = gateway.call('GET', `${ASSIGNMENT}?wait=60&version=${encodeURIComponent(version)}`, { token });
    await fixture.patchAgent('team-a', 'late', { spec: { suspend: true } });
    const { suspended, version: next } = JSON.parse((await changed).text) as { suspended: boolean; version: string };
    assert.equal(suspended, true);
    assert.notEqual(next, version);
  });

  it('a pod bound to two agents is rejected', async () => {
    const both = await fixture.createRunningAgent('team-a', 'both');
    await pollValue(
      'the gateway to know the agent',
      async () => (await gateway.call('GET', ASSIGNMENT, { token: both.token })).status,
      (value) => value === 200,
    );
    await fixture.createAgent('team-a', 'thief');
    await fixture.bindPod('team-a', 'thief', both.pod);
    await poll('the binding conflict', async () => {
      const answer = await gateway.call('GET', ASSIGNMENT, { token: both.token });
      return codeOf(answer) === 'TEMPER_POD_BINDING_CONFLICT';
    });
    assert.ok(fixture.logLines.some((line) => line.includes(both.pod.uid) && line.includes('team-a/thief')));
  });

  it('two living pods of an agent are not served until one is confirmed', async () => {
    const agentUid = await fixture.createAgent('team-a', 'twice');
    const pods = await Promise.all(['twice-1', 'twice-2'].map((name) => fixture.createPod('team-a', name)));
    const tokens = await Promise.all(pods.map((pod) => fixture.createPodToken('team-a', pod)));
    const [first = { name: '', uid: '' }, second = first] = pods;
    const answers = () => Promise.all(tokens.map((token) => gateway.call('GET', ASSIGNMENT, { token })));
    const both = async (state: string, is: (answer: HttpResponse, index: number) => boolean) =>
      poll(state, async () => (await answers()).every(is));
    await both('the gateway to know both pods', ({ status }) => status === 204);
    await fixture.claimPod('team-a', 'twice', first);
    await both('the first pod to be bound', ({ status }, index) => status === (index === 0 ? 200 : 204));
    await fixture.claimPod('team-a', 'twice', second);
    await both('the conflict', (answer) => codeOf(answer) === 'TEMPER_POD_BINDING_CONFLICT');
    assert.ok(
      fixture.logLines.some((line) => line.includes(first.uid) && line.includes('team-a/twice')),
      agentUid,
    );
    await fixture.bindPod('team-a', 'twice', second);
    await both('the confirmed pod to be bound', ({ status }, index) => status === (index === 1 ? 200 : 204));
  });

  it('the token of a replaced or deleted pod is rejected at once', async () => {
    const ends = async (name: string, end: (pod: { name: string; uid: string }) => Promise<unknown>) => {
      const { token, pod } = await fixture.createRunningAgent('team-a', name);
      const asks = () => gateway.call('POST', NEXT, { token, body: { waitSeconds: 0 } });
      await pollValue(
        'the token to be accepted',
        async () => (await asks()).status,
        (value) => value === 204,
      );
      await end(pod);
      // By the watches. Without them the token would be accepted until it expires, an hour later.
      await pollValue(
        'the token to be rejected',
        async () => (await asks()).status,
        (value) => value === 403,
      );
    };
    await ends('replaced', async () => {
      const other = await fixture.createPod('team-a', 'replaced-2');
      await fixture.bindPod('team-a', 'replaced', other);
    });
    await ends('deleted', ({ name }) =>
      fixture.plane.admin.call('DELETE', `/api/v1/namespaces/team-a/pods/${name}`, {
        body: { apiVersion: 'v1', kind: 'DeleteOptions', gracePeriodSeconds: 0 },
      }),
    );
  });

  a2aTests(() => (messages ??= openMessages()));
});
