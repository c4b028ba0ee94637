import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, describe, it } from 'node:test';
import { pollValue } from '../../../../test/support/poll.ts';
import { parsePrometheusText } from '../../../../test/support/prometheus-text.ts';
import type { GatewayServerOptions } from '../server.ts';
import { statusOf, TestServer } from '../server.testing.ts';

const HOST = 'Host: gateway\r\n';
const POD = `GET /quick HTTP/1.1\r\n${HOST}Authorization: Bearer good-anna\r\n\r\n`;
const userRequest = (namespace: string) =>
  `GET /users/${namespace} HTTP/1.1\r\n${HOST}Temper-Token: ${namespace}\r\n\r\n`;
const REFILLED_NEVER = 0.000_001;

describe('limits of connections', () => {
  let test: TestServer;
  afterEach(() => test[Symbol.asyncDispose]());

  async function start(connectionLimits: GatewayServerOptions['connectionLimits'] = {}): Promise<void> {
    test = await TestServer.start({ connectionLimits: { max: 1_000, ...connectionLimits } });
  }
  /** Opens a connection, sends the request on it and leaves it open. Returns the first part of the response. */
  async function send(request: string): Promise<string> {
    const socket = await test.open();
    socket.write(request);
    const [data] = (await once(socket, 'data')) as [Buffer];
    return data.toString();
  }
  const refusals = async (reason: string): Promise<number> =>
    parsePrometheusText(await test.page()).samples.get(`temper_connections_refused_total{reason="${reason}"}`) ?? 0;
  const warnings = (reason: string) => test.lines.filter((line) => line.includes(`"reason":"${reason}"`));

  it('the users of one namespace have a limited number of connections, and those of other namespaces keep theirs', async () => {
    await start({ perAddress: 3, perGroup: 2 });
    assert.equal(statusOf(await send(userRequest('team-a'))), 200);
    assert.equal(statusOf(await send(userRequest('team-a'))), 200);
    const refused = await test.exchange(userRequest('team-a'));
    assert.equal(statusOf(refused), 429);
    assert.match(refused, /connection: close/i);
    for (let index = 0; index < 2; index += 1) assert.equal(statusOf(await send(userRequest('team-b'))), 200);
    assert.equal(await refusals('namespace'), 1);
  });

  it('an address opens a limited number of connections without a valid token, and any number with one', async () => {
    await start({ unauthenticated: { perSecond: REFILLED_NEVER, burst: 2 } });
    for (let index = 0; index < 5; index += 1) assert.equal(statusOf(await send(POD)), 200);
    await test.open();
    await test.open();
    await assert.rejects(test.open());
    assert.equal(await refusals('unauthenticated'), 1);
    assert.match(warnings('unauthenticated')[0] ?? '', /"address":"127\.0\.0\.1".*"refused":1/);
  });

  it('pods leave connections to users, and one beyond their share finds a place when another has ended', async () => {
    await start({ max: 6, maxWithoutGroup: 2, perAddress: 6 });
    const first = await test.open();
    first.write(POD);
    await once(first, 'data');
    assert.equal(statusOf(await send(POD)), 200);
    const refused = await test.exchange(POD);
    assert.equal(statusOf(refused), 503);
    assert.match(refused, /TEMPER_OVERLOADED/);
    assert.match(refused, /connection: close/i);
    assert.equal(await refusals('pods'), 1);
    assert.equal(statusOf(await send(userRequest('team-a'))), 200);
    first.destroy();
    await pollValue(
      'a place for another pod',
      async () => statusOf(await test.exchange(POD.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'))),
      (status) => status === 200,
    );
  });

  it('a connection that a pod and then a user has no longer counts as one of a pod', async () => {
    await start({ maxWithoutGroup: 1 });
    const shared = await test.open();
    for (const request of [POD, userRequest('team-a')]) {
      shared.write(request);
      await once(shared, 'data');
    }
    assert.equal(statusOf(await send(POD)), 200);
    assert.equal(statusOf(await test.exchange(POD)), 503);
    shared.destroy();
    assert.equal(statusOf(await test.exchange(POD)), 503);
  });

  it('an address that users have may open more connections without a valid token', async () => {
    await start({
      unauthenticated: { perSecond: REFILLED_NEVER, burst: 2 },
      unauthenticatedShared: { perSecond: REFILLED_NEVER, burst: 10 },
    });
    await send(userRequest('team-a'));
    for (let index = 0; index < 10; index += 1) await test.open();
    await assert.rejects(test.open());
  });

  it('connections that are not served are counted by their reason, and the log names their address a few times', async () => {
    await start({ max: 20, perAddress: 4 });
    const plain = connect(test.port, '127.0.0.1').on('error', () => undefined);
    plain.end('GET / HTTP/1.1\r\n\r\n');
    await pollValue(
      'the refusal of the handshake',
      () => refusals('tls'),
      (count) => count === 1,
    );
    assert.equal(statusOf(await test.exchange('NONSENSE\r\n\r\n')), 400);
    assert.equal(await refusals('request'), 1);
    for (const reason of ['tls', 'request']) assert.match(warnings(reason)[0] ?? '', /"address":"127\.0\.0\.1"/);
    for (let index = 0; index < 4; index += 1) await test.open();
    for (let index = 0; index < 25; index += 1) await assert.rejects(test.open());
    assert.equal(await refusals('address'), 25);
    assert.equal(warnings('address').length, 2);
  });
});

describe('the log of refused requests', () => {
  it('the log names a caller that is refused often, and does not have each of its refusals', async () => {
    const limits = { perSecond: REFILLED_NEVER, burst: 1, inFlight: 1, longPolls: 1 };
    await using test = await TestServer.start({ rateLimits: { pod: limits, users: limits } });
    const pod = POD.replace('anna', 'verified');
    const last = pod.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n');
    await test.exchange(`${pod.repeat(149)}${last}`);
    const served = await test.exchange(last.replace('verified', 'team-b.bert'));
    const lines = test.lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    const refused = lines.filter(({ status }) => status === 429);
    assert.equal(refused.length, 100);
    assert.deepEqual(
      [refused[0]?.['namespace'], refused[0]?.['agent'], refused[0]?.['code']],
      ['team-a', 'verified', 'TEMPER_RATE_LIMITED'],
    );
    const named = lines.filter((line) => 'refused' in line);
    assert.deepEqual(
      named.map(({ namespace, agent, refused: count }) => [namespace, agent, count]),
      [['team-a', 'verified', 100]],
    );
    assert.match(served, /HTTP\/1\.1 200/);
  });

  it('the log names the address of callers without a valid token', async () => {
    await using test = await TestServer.start();
    assert.equal(await test.status('/quick', { authorization: 'Bearer bad' }), 401);
    assert.match(test.lines.join(''), /"status":401,"code":"TEMPER_TOKEN_INVALID".*"address":"127\.0\.0\.1"/);
  });

  it('a flood of invalid tokens of one address is refused without verification, and a valid token is not', async () => {
    const never = { perSecond: REFILLED_NEVER, burst: 3 };
    await using test = await TestServer.start({ invalidTokenLimits: { pods: never, users: never } });
    const statuses: number[] = [];
    for (let index = 0; index < 5; index += 1) {
      statuses.push(await test.status('/quick', { authorization: 'Bearer bad' }));
    }
    assert.deepEqual(statuses, [401, 401, 401, 429, 429]);
    assert.equal(await test.status('/quick', { authorization: 'Bearer good-verified' }), 200);
    assert.equal(await test.status('/quick', { authorization: 'Bearer good-unknown' }), 429);
    assert.equal(await test.status('/users/team-a', { 'temper-token': 'team-a' }), 200);
  });
});
