import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { ErrorCode } from '../../src/lib/error-codes.ts';
import type { WireError } from '../../src/remote/wire.ts';
import { eventually, GatewayHouse, type HttpAnswer, type Replica } from './gateway-house.ts';

const ASSIGNMENT = '/v1/assignment';
const NEXT = '/v1/messages/next';
const PEOPLE = '/v1/people/namespaces/team-a/top';

function codeOf({ text }: HttpAnswer): ErrorCode | undefined {
  return text === '' ? undefined : (JSON.parse(text) as Partial<WireError>).error?.code;
}

describe('who calls the gateway, by tokens of a real API server', () => {
  let house: GatewayHouse;
  let gateway: Replica;
  let scout: Awaited<ReturnType<GatewayHouse['runningAgent']>>;

  before(async () => {
    house = await GatewayHouse.open(['team-a', 'team-b']);
    scout = await house.runningAgent('team-a', 'scout');
    gateway = await house.replica();
  });
  after(async () => {
    await house?.[Symbol.asyncDispose]();
  });

  const refused = async (code: ErrorCode, path: string, options: Parameters<Replica['call']>[2]): Promise<void> => {
    const post = path === NEXT ? { body: { waitSeconds: 0 } } : {};
    const answer = await gateway.call(path === NEXT ? 'POST' : 'GET', path, { ...post, ...options });
    assert.equal(codeOf(answer), code, answer.text);
  };

  it('the pod an agent is bound to is that agent', async () => {
    const answer = await gateway.call('GET', ASSIGNMENT, { token: scout.token });
    assert.equal(answer.status, 200, answer.text);
    const { agent, policy, level, version } = JSON.parse(answer.text) as Record<string, unknown>;
    assert.deepEqual(
      [(agent as { uid: string }).uid, (policy as { name: string }).name, level, typeof version],
      [scout.uid, 'standard', 'sandboxed', 'string'],
    );
    assert.equal((await gateway.call('POST', NEXT, { token: scout.token, body: { waitSeconds: 0 } })).status, 204);
  });

  it('a token from another address is of no use', async () => {
    await refused('TEMPER_POD_ADDRESS', ASSIGNMENT, { token: scout.token, from: '127.0.0.2' });
    await refused('TEMPER_POD_ADDRESS', NEXT, { token: scout.token, from: '127.0.0.2' });
  });

  it('a token of every wrong class is refused', async () => {
    const { pod } = scout;
    const audience = (audiences: string[]) => house.podToken('team-a', pod, { audiences });
    await refused('TEMPER_TOKEN_AUDIENCE', ASSIGNMENT, { token: await audience(['temper-egress']) });
    await refused('TEMPER_TOKEN_AUDIENCE', ASSIGNMENT, { token: await audience(['temper-gateway', 'temper-egress']) });
    const own = ['https://kubernetes.default.svc'];
    await refused('TEMPER_TOKEN_AUDIENCE', ASSIGNMENT, { token: await audience(own) });
    const long = await house.podToken('team-a', pod, { expirationSeconds: 7_200 });
    await refused('TEMPER_TOKEN_INVALID', ASSIGNMENT, { token: long });
    const unbound = await house.token('team-a', 'temper-agent');
    await refused('TEMPER_TOKEN_INVALID', ASSIGNMENT, { token: unbound });
    await refused('TEMPER_TOKEN_INVALID', ASSIGNMENT, { token: await house.token('team-a', 'other') });
    await refused('TEMPER_TOKEN_INVALID', ASSIGNMENT, { token: await house.personToken('team-a') });
    const [header, payload, signature = ''] = scout.token.split('.');
    const altered = `${header}.${payload}.${signature.slice(0, -8)}AAAAAAAA`;
    await refused('TEMPER_TOKEN_INVALID', ASSIGNMENT, { token: altered });
    await refused('TEMPER_TOKEN_INVALID', ASSIGNMENT, {});
    await refused('TEMPER_TOKEN_INVALID', ASSIGNMENT, { person: scout.token });
  });

  it('a person is let in with a token of their namespace alone, and never as an agent', async () => {
    const person = await house.personToken('team-a');
    await refused('TEMPER_TOKEN_INVALID', PEOPLE, { token: person });
    await refused('TEMPER_TOKEN_INVALID', PEOPLE, { person: scout.token });
    await refused('TEMPER_POLICY_DENIED', PEOPLE, { person: await house.personToken('team-b') });
    const agents = await gateway.call('GET', '/v1/people/namespaces/team-a/deadletters', { person });
    assert.deepEqual([agents.status, agents.text], [200, '[]']);
  });

  it('a warm pod waits for its assignment and may do nothing else; once bound it is told', async () => {
    const pod = await house.pod('team-a', 'warm-1');
    const token = await house.podToken('team-a', pod);
    await eventually(async () => (await gateway.call('GET', ASSIGNMENT, { token })).status === 204);
    await refused('TEMPER_POD_NOT_BOUND', NEXT, { token });
    const waiting = gateway.call('GET', `${ASSIGNMENT}?wait=60`, { token });
    await house.agent('team-a', 'late');
    await house.bind('team-a', 'late', pod);
    const answer = await waiting;
    assert.equal(answer.status, 200, answer.text);
    const { agent, version } = JSON.parse(answer.text) as { agent: { name: string }; version: string };
    assert.equal(agent.name, 'late');
    const changed = gateway.call('GET', `${ASSIGNMENT}?wait=60&version=${encodeURIComponent(version)}`, { token });
    await house.changeAgent('team-a', 'late', { spec: { suspend: true } });
    const { suspended, version: next } = JSON.parse((await changed).text) as { suspended: boolean; version: string };
    assert.equal(suspended, true);
    assert.notEqual(next, version);
  });

  it('a uid bound twice is refused for both', async () => {
    const both = await house.runningAgent('team-a', 'both');
    await eventually(async () => (await gateway.call('GET', ASSIGNMENT, { token: both.token })).status === 200);
    await house.agent('team-a', 'thief');
    await house.bind('team-a', 'thief', both.pod);
    await eventually(async () => {
      const answer = await gateway.call('GET', ASSIGNMENT, { token: both.token });
      return codeOf(answer) === 'TEMPER_POD_BOUND_TWICE';
    });
    assert.ok(house.lines.some((line) => line.includes(both.pod.uid) && line.includes('team-a/thief')));
  });

  it('a token of a replaced or deleted pod ends with the binding, within two seconds', async () => {
    const ends = async (name: string, end: (pod: { name: string; uid: string }) => Promise<unknown>) => {
      const { token, pod } = await house.runningAgent('team-a', name);
      const asks = () => gateway.call('POST', NEXT, { token, body: { waitSeconds: 0 } });
      await eventually(async () => (await asks()).status === 204);
      await end(pod);
      const from = performance.now();
      await eventually(async () => (await asks()).status === 403);
      return performance.now() - from;
    };
    const replaced = await ends('replaced', async () => {
      const other = await house.pod('team-a', 'replaced-2');
      await house.bind('team-a', 'replaced', other);
    });
    const deleted = await ends('deleted', ({ name }) =>
      house.plane.admin.call('DELETE', `/api/v1/namespaces/team-a/pods/${name}`, {
        body: { apiVersion: 'v1', kind: 'DeleteOptions', gracePeriodSeconds: 0 },
      }),
    );
    assert.ok(replaced < 2_000 && deleted < 2_000, `${replaced} ms, ${deleted} ms`);
  });
});
