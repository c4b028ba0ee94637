import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { poll } from '../../../../test/support/poll.ts';
import { isTemperError } from '../../../lib/errors.ts';
import {
  type FakeResponse,
  type FakeCluster,
  fakeCluster,
  GATEWAY_PROXY as PROXY,
  installedCluster as installed,
  servicesIn,
  USER_TOKEN as TOKEN,
} from '../api-server.testing.ts';
import { aTerminal } from '../../io.testing.ts';
import { reactivate } from '../decisions/reactivate.ts';
import { check } from './check.ts';
import { deadLetters } from './dead-letters.ts';
import { clusterDescribe } from './describe.ts';
import { clusterGet } from './get.ts';
import { logs } from './logs.ts';
import { sessions, top, usage } from './reports.ts';
import { send } from './send.ts';
import { suspend } from './suspend.ts';

const AGENT = '/apis/temper.dev/v1alpha1/namespaces/team-a/agents/analyst';
const FORBIDDEN: FakeResponse = {
  status: 403,
  body: { kind: 'Status', reason: 'Forbidden', message: 'no such right' },
};
const RECEIPT = { id: 'm-1', session: 's-1', duplicate: false, podBound: true, after: 0 };

const lines = (...values: object[]): string => values.map((value) => `${JSON.stringify(value)}\n`).join('');
const event = (seq: number, rest: object) => ({
  seq,
  kind: 'event',
  event: { time: '2026-01-01T00:00:00Z', agent: 'analyst', session: 's-1', rootMessage: 'm-1', ...rest },
});

async function refusal(work: Promise<unknown>): Promise<{ code: string; message: string }> {
  const error: unknown = await work.then(
    () => assert.fail('nothing was refused'),
    (thrown: unknown) => thrown,
  );
  assert.ok(isTemperError(error), String(error));
  return error;
}

describe('temper send on a cluster', () => {
  const to = (cluster: FakeCluster) => ({ kubeconfig: cluster.kubeconfig, agent: 'analyst', output: 'text' }) as const;

  it('send goes through the API server with a token of temper-users, and without the credential of the user', async () => {
    await using cluster = await installed(({ path }) =>
      path === `${PROXY}/agents/analyst/messages` ? { status: 200, body: RECEIPT } : undefined,
    );
    const io = aTerminal();
    assert.equal(await send({ ...to(cluster), text: 'Hello', session: 's-1' }, io), 0);
    const token = cluster.requests.find(({ path }) => path === TOKEN);
    assert.deepEqual((token?.body as { spec?: object } | undefined)?.spec, {
      audiences: ['temper-gateway'],
      expirationSeconds: 600,
    });
    const sent = cluster.requests.find(({ path }) => path.endsWith('/messages'));
    assert.equal(sent?.headers['temper-token'], 'the-token');
    assert.match(String(sent?.headers['idempotency-key']), /^cli-/);
    assert.deepEqual(sent?.body, { text: 'Hello', session: 's-1' });
    assert.equal(io.printed(), 's-1\n');
    assert.match(io.errors(), /message m-1 to agent\/analyst in prod\/team-a sent · session s-1/);
    assert.ok(!io.errors().includes('the-token'));
  });

  it('send reads standard input, and refuses an empty text', async () => {
    await using cluster = await installed(({ path }) =>
      path.endsWith('/messages') ? { status: 200, body: { ...RECEIPT, podBound: false } } : undefined,
    );
    const io = aTerminal('from a pipe\n');
    assert.equal(await send({ ...to(cluster), text: '-' }, io), 0);
    assert.deepEqual(cluster.requests.at(-1)?.body, { text: 'from a pipe' });
    assert.match(io.errors(), /the agent is idle and is being started/);
    assert.equal((await refusal(send({ ...to(cluster), text: '' }, aTerminal()))).code, 'TEMPER_USAGE');
  });

  it('send --follow continues after a broken connection until the answer, and prints each event once', async () => {
    let connections = 0;
    await using cluster = await installed(({ path }) => {
      if (path.endsWith('/messages')) return { status: 200, body: RECEIPT };
      if (!path.includes('/sessions/s-1/events?')) return undefined;
      connections += 1;
      const first = lines(
        event(1, { type: 'message-received', text: 'Hello' }),
        event(2, { type: 'tool-call', tool: 'csv_rows', input: {} }),
      );
      if (connections === 1) {
        return async (response) => {
          response.writeHead(200);
          response.write(`\n${first}{"seq":3,"kind":"ev`);
          await poll('the first events', () => io.printed().includes('csv_rows'));
          response.destroy();
        };
      }
      if (connections === 2) return { status: 503, body: { kind: 'Status', message: 'no endpoints available' } };
      const claimed = event(3, { type: 'session-end', reply: 'what the pod claims', turns: 1, toolCalls: 1 });
      return {
        status: 200,
        body: lines(claimed, {
          seq: 4,
          kind: 'reply',
          message: 'm-1',
          text: 'West fell most.',
          finishReason: 'complete',
        }),
      };
    });
    const io = aTerminal();
    assert.equal(await send({ ...to(cluster), text: 'Hello', follow: true }, io), 0);
    assert.deepEqual(
      cluster.requests
        .filter(({ path }) => path.includes('/events?'))
        .map(({ path }) => new URLSearchParams(path.split('?')[1]).get('after')),
      ['0', '2', '2'],
    );
    assert.equal(io.printed().match(/▸ You: Hello/g)?.length, 1);
    assert.match(io.printed(), /◂ analyst: West fell most\./);
    assert.ok(!io.printed().includes('what the pod claims'));
  });

  it('send --follow waits while NATS starts, and then prints the answer', async () => {
    const away = { error: { code: 'TEMPER_BUS_UNAVAILABLE', message: 'NATS is unavailable since noon' } };
    const attempts = { send: 0, events: 0 };
    await using cluster = await installed(({ path }) => {
      const kind = path.endsWith('/messages') ? 'send' : path.includes('/events?') ? 'events' : undefined;
      if (kind === undefined) return undefined;
      attempts[kind] += 1;
      if (attempts[kind] === 1) return { status: 503, body: away };
      if (kind === 'send') return { status: 200, body: RECEIPT };
      return {
        status: 200,
        body: lines({ seq: 1, kind: 'reply', message: 'm-1', text: 'West fell most.', finishReason: 'complete' }),
      };
    });
    const io = aTerminal();
    assert.equal(await send({ ...to(cluster), text: 'Hello', follow: true }, io), 0);
    assert.match(io.printed(), /West fell most\./);
    assert.match(io.errors(), /NATS is unavailable; retrying for up to 59 s/);
    assert.deepEqual(attempts, { send: 2, events: 2 });
  });

  it('send --follow in an existing session starts after earlier messages, and ends with its own answer', async () => {
    await using cluster = await installed(({ path }) => {
      if (path.endsWith('/messages')) return { status: 200, body: { ...RECEIPT, after: 7 } };
      if (!path.includes('/events?')) return undefined;
      const others = { seq: 8, kind: 'reply', message: 'm-0', text: 'to another user', finishReason: 'complete' };
      return {
        status: 200,
        body: lines(others, { seq: 9, kind: 'reply', message: 'm-1', text: '[refused]', finishReason: 'refusal' }),
      };
    });
    const io = aTerminal();
    assert.equal(
      await send({ ...to(cluster), session: 's-1', text: 'x', follow: true }, io),
      1,
      'the message was refused',
    );
    assert.match(io.printed(), /refused/);
    const path = cluster.requests.find((call) => call.path.includes('/events?'))?.path ?? '';
    assert.equal(new URLSearchParams(path.split('?')[1]).get('after'), '7');
  });

  it('send --follow exits 1 when the message failed, and escapes control characters', async () => {
    await using cluster = await installed(({ path }) => {
      if (path.endsWith('/messages')) return { status: 200, body: RECEIPT };
      if (!path.includes('/events?')) return undefined;
      const noise = event(1, { type: 'warning', message: 'a\u001b[2Jb' });
      return {
        status: 200,
        body: lines(noise, {
          seq: 2,
          kind: 'failed',
          message: 'm-1',
          code: 'TEMPER_TIMEOUT',
          text: 'too\u001b[1m long',
        }),
      };
    });
    const io = aTerminal();
    assert.equal(await send({ ...to(cluster), text: 'Hello', follow: true }, io), 1);
    assert.match(io.errors(), /✗ TEMPER_TIMEOUT: too/);
    assert.ok(!`${io.printed()}${io.errors()}`.includes('\u001b'));
  });

  it('send prints JSON lines with --output json', async () => {
    const reply = { seq: 1, kind: 'reply', message: 'm-1', text: 'Yes.', finishReason: 'complete' };
    await using cluster = await installed(({ path }) => {
      if (path.endsWith('/messages')) return { status: 200, body: RECEIPT };
      return path.includes('/events?') ? { status: 200, body: lines(reply) } : undefined;
    });
    const io = aTerminal();
    assert.equal(await send({ ...to(cluster), output: 'json', text: 'x', follow: true }, io), 0);
    assert.deepEqual(
      io
        .printed()
        .trim()
        .split('\n')
        .map((text) => JSON.parse(text) as object),
      [{ type: 'sent', ...RECEIPT }, reply],
    );
  });

  it('send names the missing permission and how to grant it', async () => {
    await using tokens = await installed(({ path }) => (path === TOKEN ? FORBIDDEN : undefined));
    const noToken = await refusal(send({ ...to(tokens), text: 'x' }, aTerminal()));
    assert.equal(noToken.code, 'TEMPER_CLUSTER_FORBIDDEN');
    assert.match(noToken.message, /create on serviceaccounts\/token of temper-users.*--clusterrole=temper-user/);
    await using proxies = await installed(({ path }) => (path.startsWith(PROXY) ? FORBIDDEN : undefined));
    const noProxy = await refusal(send({ ...to(proxies), text: 'x' }, aTerminal()));
    assert.equal(noProxy.code, 'TEMPER_CLUSTER_FORBIDDEN');
    assert.match(noProxy.message, /services\/proxy on https:temper-gateway:8443/);
  });

  it('send distinguishes an unavailable gateway from one that refuses', async () => {
    await using unavailable = await installed(({ path }) =>
      path.startsWith(PROXY) ? { status: 503, body: { kind: 'Status', message: 'no endpoints available' } } : undefined,
    );
    const gone = await refusal(send({ ...to(unavailable), text: 'x', retrySeconds: 2 }, aTerminal()));
    assert.equal(gone.code, 'TEMPER_GATEWAY_UNREACHABLE');
    assert.match(gone.message, /temper check/);
    const error = { code: 'TEMPER_NOT_FOUND', message: 'namespace team-a has no agent "analyst"' };
    await using refusing = await installed(({ path }) =>
      path.startsWith(PROXY) ? { status: 404, body: { error } } : undefined,
    );
    const refused = await refusal(send({ ...to(refusing), text: 'x' }, aTerminal()));
    assert.deepEqual({ code: refused.code, message: refused.message }, error);
  });

  it('send uses the default namespace when it may not list Services, or the one of the options', async () => {
    await using cluster = await installed(({ path }) => {
      if (path.startsWith('/api/v1/services?')) return FORBIDDEN;
      return path.endsWith('/messages') ? { status: 200, body: RECEIPT } : undefined;
    });
    assert.equal(await send({ ...to(cluster), text: 'x' }, aTerminal()), 0);
    assert.ok(cluster.requests.at(-1)?.path.startsWith(PROXY));
    assert.equal(
      await send({ ...to(cluster), temperNamespace: 'elsewhere', namespace: 'team-b', text: 'x' }, aTerminal()).catch(
        () => 'refused',
      ),
      'refused',
    );
    assert.ok(
      cluster.requests.some(({ path }) => path.includes('/namespaces/team-b/serviceaccounts/temper-users/token')),
    );
  });
});

describe('temper on a cluster with two releases', () => {
  it('send refuses to choose between two releases', async () => {
    await using cluster = await installed(({ path }) =>
      path.startsWith('/api/v1/services?') ? servicesIn('temper-one', 'temper-two') : undefined,
    );
    const { kubeconfig } = cluster;
    const { code, message } = await refusal(
      send({ kubeconfig, agent: 'analyst', text: 'x', output: 'text' }, aTerminal()),
    );
    assert.equal(code, 'TEMPER_USAGE');
    assert.match(message, /temper-one, temper-two; choose one with --temper-namespace/);
  });
});

describe('temper get and describe on a cluster', () => {
  it('get prints the columns of the API server', async () => {
    const columnDefinitions = [
      { name: 'Name', priority: 0 },
      { name: 'Ready', priority: 0 },
      { name: 'Node', priority: 1 },
    ];
    const rows = [{ cells: ['analyst', 'True', 'node-1'] }, { cells: ['b\u001b[2J', null, 'node-2'] }];
    await using cluster = await fakeCluster(({ headers }) =>
      headers.accept?.includes('as=Table') === true
        ? { status: 200, body: { kind: 'Table', columnDefinitions, rows } }
        : undefined,
    );
    const get = async (output: 'text' | 'wide') => {
      const io = aTerminal();
      assert.equal(await clusterGet({ kubeconfig: cluster.kubeconfig, targets: ['ag'], output }, io), 0);
      return io.printed();
    };
    assert.equal(await get('text'), 'NAME        READY\nanalyst     True\nb\\u{1b}[2J\n');
    assert.match(await get('wide'), /NODE\nanalyst {5}True {3}node-1/);
    assert.equal(cluster.requests[0]?.path, '/apis/temper.dev/v1alpha1/namespaces/team-a/agents');
    assert.equal(
      (
        await refusal(
          clusterGet({ kubeconfig: cluster.kubeconfig, targets: ['sessions'], output: 'text' }, aTerminal()),
        )
      ).code,
      'TEMPER_USAGE',
    );
  });

  it('describe prints an object with its conditions and events', async () => {
    const conditions = [{ type: 'Ready', status: 'False', reason: 'Unschedulable', message: '0/3 nodes fit' }];
    const metadata = { name: 'analyst', namespace: 'team-a', uid: 'u-1', managedFields: [{}] };
    await using cluster = await fakeCluster(({ path }) => {
      if (path === AGENT) return { status: 200, body: { kind: 'Agent', metadata, spec: {}, status: { conditions } } };
      if (!path.startsWith('/api/v1/namespaces/team-a/events?')) return undefined;
      const of = (uid: string, reason: string) => ({
        metadata: { name: reason.toLowerCase() },
        involvedObject: { uid },
        type: 'Warning',
        reason,
        message: 'm',
      });
      return {
        status: 200,
        body: {
          kind: 'EventList',
          metadata: { resourceVersion: '1' },
          items: [of('u-1', 'NotReady'), of('u-0', 'OfAnOldOne')],
        },
      };
    });
    const io = aTerminal();
    assert.equal(
      await clusterDescribe({ kubeconfig: cluster.kubeconfig, targets: ['agent', 'analyst'], output: 'text' }, io),
      0,
    );
    assert.match(io.printed(), /^Name: +analyst\nNamespace: +team-a\nLabels: +<none>\n/);
    assert.match(io.printed(), /Conditions:\n.*\n +Ready +False +Unschedulable +- +0\/3 nodes fit\n/);
    assert.match(io.printed(), /Events:\n.*\n +Warning +NotReady +-/);
    assert.ok(!/managedFields|OfAnOldOne/.test(io.printed()));
    const missing = await refusal(
      clusterDescribe({ kubeconfig: cluster.kubeconfig, targets: ['agent/none'], output: 'text' }, aTerminal()),
    );
    assert.equal(missing.code, 'TEMPER_NOT_FOUND');
  });
});

describe('temper logs', () => {
  it("logs prints the log of the agent's pod with control characters escaped", async () => {
    await using cluster = await fakeCluster(({ path }) => {
      if (path === AGENT)
        return {
          status: 200,
          body: { metadata: { name: 'analyst' }, status: { pod: { name: 'analyst-x', uid: 'u' } } },
        };
      const isLog = path.startsWith('/api/v1/namespaces/team-a/pods/analyst-x/log?container=sandbox&tailLines=5');
      return isLog ? { status: 200, body: 'one\ntwo \u001b]0;x\u0007\nthree' } : undefined;
    });
    const io = aTerminal();
    assert.equal(
      await logs({ kubeconfig: cluster.kubeconfig, agent: 'analyst', container: 'sandbox', tail: 5 }, io),
      0,
    );
    assert.equal(io.printed(), 'one\ntwo \\u{1b}]0;x\\u{7}\nthree\n');
  });

  it('logs reports that the agent has no pod', async () => {
    await using cluster = await fakeCluster(({ path }) =>
      path === AGENT ? { status: 200, body: { metadata: { name: 'analyst' } } } : undefined,
    );
    const refused = await refusal(
      logs({ kubeconfig: cluster.kubeconfig, agent: 'analyst', container: 'agent' }, aTerminal()),
    );
    assert.match(refused.message, /has no pod now/);
  });
});

describe('temper reactivate on a cluster', () => {
  it('the order names agent, tool and reason, and a command without an agent sends nothing', async () => {
    const digest = `sha256:${'a'.repeat(64)}`;
    await using cluster = await installed(({ path }) =>
      path === `${PROXY}/agents/analyst/reactivations`
        ? { status: 200, body: { agent: 'analyst', tool: 'csv_rows', digest } }
        : undefined,
    );
    const { kubeconfig } = cluster;
    const options = { kubeconfig, tool: 'csv_rows', reason: 'corrected data', output: 'text' } as const;
    const io = aTerminal();
    assert.equal((await refusal(reactivate(options, io))).code, 'TEMPER_USAGE');
    assert.deepEqual(cluster.requests, []);
    assert.equal(await reactivate({ ...options, agent: 'analyst' }, io), 0);
    assert.match(io.printed(), /^csv_rows of analyst is verified again in prod\/team-a; /);
    const { method, body, headers } = cluster.requests.at(-1) ?? assert.fail('no request');
    assert.deepEqual([method, body], ['POST', { tool: 'csv_rows', reason: 'corrected data' }]);
    assert.match(String(headers['idempotency-key']), /^cli-/);
  });
});

describe('temper suspend and resume', () => {
  it('suspend and resume change one field and print the cluster and namespace', async () => {
    await using cluster = await fakeCluster(({ method }) =>
      method === 'PATCH' ? { status: 200, body: { metadata: { name: 'x', generation: 2 } } } : undefined,
    );
    const { kubeconfig } = cluster;
    const io = aTerminal();
    assert.equal(await suspend({ kubeconfig, agent: 'analyst', suspend: true, output: 'text' }, io), 0);
    assert.equal(await suspend({ kubeconfig, policy: 'standard', suspend: false, output: 'text' }, io), 0);
    assert.equal(io.printed(), 'agent/analyst suspended in prod/team-a\ntrustpolicy/standard resumed in prod/team-a\n');
    assert.deepEqual(
      cluster.requests.map(({ path, body }) => [path, body]),
      [
        [AGENT, { spec: { suspend: true } }],
        ['/apis/temper.dev/v1alpha1/namespaces/team-a/trustpolicies/standard', { spec: { suspend: false } }],
      ],
    );
    assert.equal((await refusal(suspend({ kubeconfig, suspend: true, output: 'text' }, io))).code, 'TEMPER_USAGE');
  });

  it('resume --wait waits for the status of this generation, and reports the last message on timeout', async () => {
    let looks = 0;
    const condition = (status: string, observedGeneration: number) => ({
      type: 'Active',
      status,
      observedGeneration,
      message: 'as before',
    });
    await using cluster = await fakeCluster(({ method }) => {
      if (method === 'PATCH') return { status: 200, body: { metadata: { name: 'analyst', generation: 2 } } };
      looks += 1;
      const conditions = [looks <= 2 ? condition('False', 1) : condition('False', 2)];
      return { status: 200, body: { metadata: { name: 'analyst' }, status: { conditions } } };
    });
    const options = { kubeconfig: cluster.kubeconfig, agent: 'analyst', output: 'text' } as const;
    assert.equal(await suspend({ ...options, suspend: true, wait: 30_000 }, aTerminal()), 0);
    assert.equal(looks, 3);
    const late = await refusal(suspend({ ...options, suspend: false, wait: 0 }, aTerminal()));
    assert.equal(late.code, 'TEMPER_TIMEOUT');
    assert.match(late.message, /not active yet: as before/);
  });

  it('a wait that is not possible changes nothing', async () => {
    await using cluster = await fakeCluster(({ method }) =>
      method === 'GET'
        ? { status: 403, body: { kind: 'Status', reason: 'Forbidden', message: 'agents is forbidden' } }
        : { status: 200, body: { metadata: { name: 'x', generation: 2 } } },
    );
    const { kubeconfig } = cluster;
    const options = { kubeconfig, suspend: true, wait: 1_000, output: 'text' } as const;
    const ofPolicy = await refusal(suspend({ ...options, policy: 'standard' }, aTerminal()));
    assert.equal(ofPolicy.code, 'TEMPER_USAGE');
    assert.match(ofPolicy.message, /--wait works for one agent only; nothing was changed/);
    const unreadable = await refusal(suspend({ ...options, agent: 'analyst' }, aTerminal()));
    assert.equal(unreadable.code, 'TEMPER_CLUSTER_FORBIDDEN');
    assert.ok(!cluster.requests.some(({ method }) => method === 'PATCH'));
  });

  it('resume reports the message of an admission policy', async () => {
    const message = 'clearing it takes the verb resume on it';
    await using cluster = await fakeCluster(() => ({
      status: 403,
      body: { kind: 'Status', reason: 'Forbidden', message },
    }));
    const refused = await refusal(
      suspend({ kubeconfig: cluster.kubeconfig, policy: 'standard', suspend: false, output: 'text' }, aTerminal()),
    );
    assert.equal(refused.code, 'TEMPER_CLUSTER_FORBIDDEN');
    assert.match(refused.message, /in prod\/team-a: .*clearing it takes the verb resume/);
  });
});

describe('reports of the gateway', () => {
  const gateway = (answers: Record<string, object>) =>
    installed(({ method, path }) => {
      const body = path.startsWith(PROXY) ? answers[`${method} ${path.slice(PROXY.length + 1)}`] : undefined;
      return body === undefined ? undefined : { status: 200, body };
    });

  it('the verbs print reports as tables', async () => {
    const now = new Date().toISOString();
    const tokens = { inputTokens: 1200, outputTokens: 34, inFlightTokens: 0, costMicros: 1500 };
    const window = { window: 'hour', ...tokens, networkBytes: 98_304 };
    await using cluster = await gateway({
      'GET agents/analyst/sessions': [{ session: 's-1', items: 3, tainted: true, openedAt: now, lastUsedAt: now }],
      'GET agents/analyst/usage': { windows: [window], limits: { tokensPerHour: 100_000 } },
      'GET policies/standard/usage': { windows: [], limits: {} },
      'GET top': [{ agent: 'analyst', waiting: 1, inFlight: 0, deadLetters: 2, tokensThisHour: 1234 }],
      'GET agents/analyst/tools': [
        { name: 'csv_rows', digest: `sha256:${'a'.repeat(64)}`, session: 's-1', uses: 6, acceptedAt: now },
      ],
    });
    const options = { kubeconfig: cluster.kubeconfig, output: 'text' } as const;
    const io = aTerminal();
    await sessions({ ...options, agent: 'analyst' }, io);
    await usage({ ...options, agent: 'analyst' }, io);
    await usage({ ...options, policy: 'standard' }, io);
    await top({ ...options, kind: 'agents' }, io);
    await top({ ...options, kind: 'tools', agent: 'analyst' }, io);
    assert.match(io.printed(), /^s-1 +3 +true +\d+s +\d+s$/m);
    assert.match(io.printed(), /^hour +1,200 +34 +0 +\$0\.0015 +98,304$/m);
    assert.match(io.printed(), /^tokensPerHour +100,000$/m);
    assert.match(io.printed(), /^analyst +1 +0 +2 +1,234 +-$/m);
    assert.match(io.printed(), /^csv_rows +analyst +s-1 +6 +- +sha256:aaaaaaaaaaaa +\d+s$/m);
    assert.equal(cluster.requests.filter(({ path }) => path === TOKEN).length, 5, 'one token per command');
  });

  it('deadletters lists dead letters, sends one again and drops one', async () => {
    await using cluster = await gateway({
      'GET deadletters': [
        {
          id: 'd-1',
          agent: 'analyst',
          deliveries: 5,
          code: 'TEMPER_TIMEOUT',
          time: '2026-01-01T00:00:00Z',
          excerpt: 'hi',
        },
      ],
      'POST deadletters/d-1/retry': {},
      'DELETE deadletters/d-1': {},
    });
    const options = { kubeconfig: cluster.kubeconfig, output: 'text' } as const;
    const io = aTerminal();
    assert.equal(await deadLetters(options, io), 0);
    assert.equal(await deadLetters({ ...options, action: 'retry', id: 'd-1' }, io), 0);
    assert.equal(await deadLetters({ ...options, action: 'drop', id: 'd-1' }, io), 0);
    assert.match(io.printed(), /^d-1 +analyst +5 +TEMPER_TIMEOUT +\d+d +hi$/m);
    assert.match(io.printed(), /deadletter\/d-1 sent again in prod\/team-a\ndeadletter\/d-1 dropped in prod\/team-a\n/);
    assert.equal((await refusal(deadLetters({ ...options, action: 'burn', id: 'd-1' }, io))).code, 'TEMPER_USAGE');
    assert.equal((await refusal(deadLetters({ ...options, action: 'drop' }, io))).code, 'TEMPER_USAGE');
  });
});

describe('temper check', () => {
  const APPS = '/apis/apps/v1/namespaces/temper-system/';
  const workload = (readyReplicas: number) => ({
    status: 200,
    body: { metadata: { name: 'x' }, spec: { replicas: 2 }, status: { readyReplicas } },
  });

  it('check succeeds when every component is ready', async () => {
    await using cluster = await fakeCluster(({ path }) =>
      path.startsWith(`${APPS}deployments`)
        ? workload(2)
        : path === '/apis/temper.dev/v1alpha1'
          ? { status: 200, body: {} }
          : undefined,
    );
    const io = aTerminal();
    assert.equal(await check({ kubeconfig: cluster.kubeconfig, output: 'text' }, io), 0);
    assert.match(io.printed(), /✓ API temper\.dev\/v1alpha1: served/);
    assert.match(io.printed(), /✓ Deployment temper-system\/temper-gateway: 2 of 2 ready/);
    assert.match(io.printed(), /✓ StatefulSet temper-system\/temper-nats: not part of this installation/);
  });

  it('check names the missing components', async () => {
    await using cluster = await fakeCluster(({ path }) => (path.endsWith('temper-gateway') ? workload(0) : undefined));
    const io = aTerminal();
    assert.equal(await check({ kubeconfig: cluster.kubeconfig, output: 'text' }, io), 1);
    assert.match(io.printed(), /✗ API temper\.dev\/v1alpha1: not served .*clusterPrerequisites/);
    assert.match(io.printed(), /✗ Deployment temper-system\/temper-operator: does not exist/);
    assert.match(io.printed(), /✗ Deployment temper-system\/temper-gateway: 0 of 2 ready; see kubectl describe/);
    assert.match(io.printed(), /✓ Deployment temper-system\/temper-egress: not part of this installation/);
  });
});
