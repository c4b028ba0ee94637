import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { aTerminal } from '../../io.testing.ts';
import { type FakeCluster, fakeCluster } from '../api-server.testing.ts';
import { decideSchedule, listSchedules, triggerSchedule } from './schedule-verbs.ts';

const PROXY = '/api/v1/namespaces/temper-system/services/https:temper-gateway:8443/proxy/v1/users/namespaces/team-a';
const TOKEN = '/api/v1/namespaces/team-a/serviceaccounts/temper-users/token';
const PAUSED = { by: 'ada\u001b[31m', reason: 'holidays', since: '2026-03-02T08:00:00Z' };
const SCHEDULES = [
  { agent: 'analyst', times: '0 9 * * 1', timeZone: 'UTC', message: 'x', failures: 0, paused: PAUSED },
  {
    agent: 'analyst',
    schedule: 'daily',
    times: 'every 10m',
    timeZone: 'UTC',
    message: 'x',
    failures: 5,
    stopped: 'failed',
  },
];

function aCluster(): Promise<FakeCluster> {
  return fakeCluster(({ path, method }) => {
    if (path === TOKEN) {
      const expirationTimestamp = new Date(Date.now() + 600_000).toISOString();
      return { status: 201, body: { status: { token: 'the-token', expirationTimestamp } } };
    }
    if (path.startsWith('/api/v1/services?')) {
      const items = [{ metadata: { name: 'temper-gateway', namespace: 'temper-system' } }];
      return { status: 200, body: { kind: 'ServiceList', metadata: { resourceVersion: '1' }, items } };
    }
    if (path.includes('selfsubjectreviews')) {
      return { status: 201, body: { status: { userInfo: { username: 'ada@example.com' } } } };
    }
    if (path.startsWith(`${PROXY}/schedules`)) return { status: 200, body: { schedules: SCHEDULES, complete: false } };
    if (path.endsWith('/trigger')) return { status: 200, body: { id: 'm-1', session: 's-1', duplicate: false } };
    return method === 'POST' && path.includes('/schedules/') ? { status: 204, body: {} } : undefined;
  });
}

const of = ({ kubeconfig }: FakeCluster) => ({ kubeconfig, agent: 'analyst', output: 'text' }) as const;
const sentTo = ({ requests }: FakeCluster, action: string) =>
  requests.find(({ path }) => path === `${PROXY}/agents/analyst/schedules/${action}`);

describe('temper schedule on a cluster', () => {
  it('the list names the schedule of the spec, who paused it, and why another one is stopped', async () => {
    await using cluster = await aCluster();
    const io = aTerminal();
    assert.equal(await listSchedules(of(cluster), io), 0);
    const [, spec = '', own = ''] = io.printed().split('\n');
    assert.match(spec, /^analyst +\(spec\) +0 9 \* \* 1 .*paused by ada.*: holidays/);
    assert.ok(!spec.includes('\u001b'));
    assert.match(own, /^analyst +daily +every 10m .*failed$/);
    assert.match(io.errors(), /more schedules than the list has/);
    const json = aTerminal();
    await listSchedules({ ...of(cluster), output: 'json' }, json);
    assert.deepEqual(
      json
        .printed()
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as object),
      SCHEDULES,
    );
  });

  it('a decision goes to the gateway with the name of the user, and an idempotency key', async () => {
    await using cluster = await aCluster();
    const io = aTerminal();
    const pause = { ...of(cluster), action: 'pause', schedule: 'daily', reason: 'holidays' } as const;
    assert.equal(await decideSchedule(pause, io), 0);
    const sent = sentTo(cluster, 'pause');
    assert.deepEqual(sent?.body, { by: 'ada@example.com', schedule: 'daily', reason: 'holidays' });
    assert.match(String(sent?.headers['idempotency-key']), /^cli-/);
    await decideSchedule({ ...of(cluster), action: 'resume' }, io);
    assert.deepEqual(sentTo(cluster, 'resume')?.body, { by: 'ada@example.com' });
    assert.equal(
      io.printed(),
      'schedule/daily of agent/analyst paused in prod/team-a\nthe schedule of agent/analyst resumed in prod/team-a\n',
    );
  });

  it('a run that a user starts is shown with its session', async () => {
    await using cluster = await aCluster();
    const io = aTerminal();
    assert.equal(await triggerSchedule(of(cluster), io), 0);
    assert.deepEqual(sentTo(cluster, 'trigger')?.body, { by: 'ada@example.com' });
    assert.match(io.printed(), /session s-1; temper trace s-1 --agent analyst shows it/);
  });
});
