import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import { createNatsAudit } from '../../../../src/nats/audit.ts';
import { a2aPath } from '../../../support/gateway/a2a-client.ts';
import type { HttpRequestOptions } from '../../../support/gateway/gateway-fixture.ts';
import { assertStatuses, flood } from '../../../support/gateway/neighbours/flood.ts';
import { NoisyNeighbours } from '../../../support/gateway/neighbours/noisy-neighbours.ts';
import { pollValue } from '../../../support/poll.ts';
import type { Tenant } from '../../../support/gateway/neighbours/tenant.ts';

const HOST = 'Host: gateway\r\n';
const JSON_TYPE = 'Content-Type: application/json\r\n';
const ITEMS = '/v1/sessions/s1/items';

/** The head of a request of the attacker's pod, without the empty line. */
function head(attacker: Tenant, line: string, headers = ''): string {
  return `${line} HTTP/1.1\r\n${HOST}Authorization: Bearer ${attacker.token}\r\n${headers}`;
}

/** Sends body bytes on one connection until the gateway closes it. */
async function sendUntilClosed(attacker: Tenant, sent: string, maxBytes: number): Promise<void> {
  const socket = await attacker.pod.open();
  socket.resume();
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  socket.write(sent);
  const piece = `10000\r\n${' '.repeat(65_536)}\r\n`;
  for (let bytes = 0; bytes < maxBytes && socket.writable; bytes += 65_536) {
    if (!socket.write(piece))
      await Promise.race([new Promise<void>((resolve) => socket.once('drain', () => resolve())), closed]);
  }
  socket.destroy();
  await closed;
}

/** Requests of one ServiceAccount over A2A. */
const PEER_BURST = 100;
const PEER_PER_SECOND = 20;

describe('a hostile pod that misuses HTTP', { timeout: 600_000 }, () => {
  let neighbours: NoisyNeighbours;

  before(async () => {
    neighbours = await NoisyNeighbours.start();
  });
  after(async () => {
    await neighbours?.[Symbol.asyncDispose]();
  });

  /** Calls with the body, each with a key of its own. */
  const repeat = (attacker: Tenant, count: number, path: string, options: HttpRequestOptions, concurrency?: number) =>
    flood(count, (index) => attacker.call('POST', path, { key: `key-${index}`, ...options }), concurrency);

  it('bodies of millions of small values cost the gateway no memory and the victim nothing', async () => {
    const body = `{"deliveryToken":"bad","afterSeq":0,"items":[${'[],'.repeat(1_300_000)}[]]}`;
    await neighbours.survive(async (attacker) => {
      assertStatuses(await repeat(attacker, 10, ITEMS, { body }, 2), [0, 413, 429], [413]);
    });
  });

  it('endless bodies to unknown routes and without a token cost the victim nothing', async () => {
    const sent = (path: string) => `POST ${path} HTTP/1.1\r\n${HOST}${JSON_TYPE}Transfer-Encoding: chunked\r\n\r\n`;
    const paths = ['/v1/nothing', '/v1/reports', '/v1/models/stream'];
    await neighbours.survive(
      async (attacker) => {
        const all = Array.from({ length: 30 }, (_, index) => sent(paths[index % paths.length] ?? ''));
        await Promise.all(all.map((one) => sendUntilClosed(attacker, one, 256 * 1_048_576)));
      },
      { named: 'address' },
    );
  });

  it('a pod that sends large bodies all at once is held to its share of bytes', async () => {
    const body = { deliveryToken: 'bad', afterSeq: 0, items: [{ role: 'user', text: 'x'.repeat(1_900_000) }] };
    await neighbours.survive(async (attacker) => {
      assertStatuses(await repeat(attacker, 48, ITEMS, { body }), [0, 403, 429], [429]);
    });
  });

  for (const [what, body, field] of [
    ['a number with an exponent beyond the largest one', '{"waitSeconds":1e999}', 'body.waitSeconds'],
    ['a number of half a million digits', `{"waitSeconds":${'9'.repeat(500_000)}}`, 'body.waitSeconds'],
    ['a negative number beyond the largest one', '{"waitSeconds":[0,-1e400]}', 'body.waitSeconds.1'],
    ['nesting of a hundred thousand levels', '['.repeat(100_000), 'nested deeper'],
    ['a member that changes the prototype', '{"waitSeconds":0,"__proto__":{"restarted":true}}', ''],
    ['a prototype below the constructor', '{"constructor":{"prototype":{"restarted":true}}}', ''],
    ['a member with lone surrogates', '{"waitSeconds":0,"\\ud800":1}', ''],
    ['half a megabyte of white space', `${' '.repeat(500_000)}x`, ''],
    [
      'the last of thousands of equal members',
      `{${'"waitSeconds":0,'.repeat(20_000)}"waitSeconds":"0"}`,
      'waitSeconds',
    ],
  ] as const) {
    it(`a body with ${what} is refused and costs the victim nothing`, async () => {
      await neighbours.survive(async (attacker) => {
        const call = () => attacker.call('POST', '/v1/messages/next', { body });
        const { status, text } = await call();
        assert.equal(status, 400, text);
        assert.ok(text.includes(field), text);
        assertStatuses(await flood(30, call, 4), [400, 429]);
      });
    });
  }

  it('compressed bodies that would expand to gigabytes are refused before they are read', async () => {
    const bomb = gzipSync(Buffer.alloc(64 * 1_048_576, ' '));
    await neighbours.survive(
      async (attacker) => {
        for (const encoding of ['gzip', 'deflate', 'br', 'gzip, gzip']) {
          const options = { body: bomb, headers: { 'content-encoding': encoding } };
          assertStatuses(await repeat(attacker, 20, '/v1/reports', options), [0, 400, 429], [400]);
        }
      },
      { named: 'address' },
    );
  });

  it('chunk extensions, trailers, and floods of headers are refused by their size', async () => {
    await neighbours.survive(
      async (attacker) => {
        const chunked = head(
          attacker,
          'POST /v1/reports',
          `${JSON_TYPE}Idempotency-Key: k\r\nTransfer-Encoding: chunked\r\n\r\n`,
        );
        const many = Array.from({ length: 3_000 }, (_, index) => `X-${index}: 1\r\n`).join('');
        for (const sent of [
          `${chunked}2;${'x'.repeat(200_000)}\r\n{}\r\n0\r\n\r\n`,
          `${chunked}${`1;a=${'b'.repeat(1_000)}\r\n \r\n`.repeat(500)}0\r\n\r\n`,
          `${chunked}2\r\n{}\r\n0\r\n${many}\r\n`,
          head(attacker, 'GET /v1/assignment', `${many}\r\n`),
          head(attacker, 'GET /v1/assignment', `X: ${'x'.repeat(100_000)}\r\n\r\n`),
          head(attacker, `GET /v1/assignment?${'x'.repeat(100_000)}`, '\r\n'),
        ]) {
          const received = await attacker.pod.exchange(sent);
          assert.match(received, /^$|HTTP\/1\.1 4\d\d/, received.slice(0, 200));
        }
      },
      { named: 'address' },
    );
  });

  it('requests that a proxy and a server could read differently are refused', async () => {
    const body = '{"waitSeconds":0}';
    await neighbours.survive(
      async (attacker) => {
        const next = (headers: string) => head(attacker, 'POST /v1/messages/next', `${JSON_TYPE}${headers}`);
        for (const sent of [
          next(`Content-Length: ${body.length}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`),
          next(`Content-Length: 1\r\nContent-Length: ${body.length}\r\n\r\n${body}`),
          next(`Content-Length: +${body.length}\r\n\r\n${body}`),
          next(`Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n`),
          next(`Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`),
          next(`Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n`),
          next(`X: a\r\n b\r\n\r\n`),
          next(`X: a\nY: b\r\n\r\n`),
          next(`X: a\u0000b\r\n\r\n`),
          'GET /v1/assignment HTTP/1.1\r\n\r\n',
          'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
          'GET /v1/assignment HTTP/0.9\r\n\r\n',
        ]) {
          const received = await attacker.pod.exchange(sent);
          assert.match(received, /^HTTP\/1\.1 4\d\d/, `${JSON.stringify(sent.slice(-80))}: ${received.slice(0, 200)}`);
        }
      },
      { named: 'address' },
    );
  });

  it('paths that lead out of the own sessions or namespace reach nothing', async () => {
    await neighbours.survive(async (attacker) => {
      const { victim } = neighbours;
      const session = 'round-1';
      for (const path of [
        `/v1/sessions/..%2f..%2fusers%2fnamespaces%2fteam-b`,
        `/v1/sessions/../../v1/users/namespaces/team-b/top`,
        `/v1/sessions/%2e%2e%2f${victim.tenant.uid}%2f${session}`,
        `/v1/sessions/${victim.tenant.uid}.${session}`,
        '/v1/sessions/*',
        '/v1/sessions/%3e',
        '/v1/sessions/%00',
        '/v1/sessions/%c0%ae%c0%ae',
        '/v1/sessions/%ff',
        `/v1/sessions/${'%f0%9f%98%80'.repeat(200)}`,
        '/v1/sessions/ round-1'.replace(' ', '%20'),
        `/v1/memory/..%2f${victim.tenant.uid}`,
        '/v1/users/namespaces/team-b/top',
        `/v1/users/namespaces/team-b/agents/victim/sessions/${session}/events`,
        '//v1/users/namespaces/team-b/top',
        '/V1/sessions/round-1',
        '/v1/assignment;a=b',
      ]) {
        const { status, text } = await attacker.call('GET', path);
        // A name like any other: the session of the own agent, which is empty.
        const isEmpty = status === 200 && text.includes('"items":[]');
        assert.ok(isEmpty || (status >= 400 && status < 500), `${path}: ${status} ${text}`);
        assert.ok(!text.includes(`reply of ${session}`), path);
      }
      const own = await attacker.call('GET', `/v1/sessions/${session}`);
      assert.equal(own.status, 200, own.text);
      assert.deepEqual((JSON.parse(own.text) as { items: unknown[] }).items, []);
    });
  });

  it('methods that no route has, upgrades and expectations are refused', async () => {
    await neighbours.survive(
      async (attacker) => {
        for (const sent of [
          head(attacker, 'TRACE /v1/assignment', 'Connection: close\r\n\r\n'),
          head(attacker, 'OPTIONS *', 'Connection: close\r\n\r\n'),
          head(attacker, 'CONNECT 10.0.0.1:443', 'Connection: close\r\n\r\n'),
          head(attacker, 'PURGE /v1/assignment', 'Connection: close\r\n\r\n'),
          head(attacker, 'GET https://10.0.0.1/v1/nothing', 'Connection: close\r\n\r\n'),
          head(
            attacker,
            'POST /v1/nothing',
            `Connection: close\r\nExpect: 100-continue\r\n${JSON_TYPE}Content-Length: 9000\r\n\r\n`,
          ),
          head(
            attacker,
            'GET /v1/nothing',
            'Connection: Upgrade, close\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n',
          ),
        ]) {
          const received = await attacker.pod.exchange(sent);
          assert.match(received, /^$|HTTP\/1\.1 4\d\d/, `${sent.split('\r\n')[0]}: ${received.slice(0, 200)}`);
        }
      },
      { named: 'address' },
    );
  });

  it('hundreds of requests that one connection pipelines cost the victim nothing', async () => {
    await neighbours.survive(
      async (attacker) => {
        const one = head(attacker, 'GET /v1/sessions/s1', '\r\n');
        const last = head(attacker, 'GET /v1/sessions/s1', 'Connection: close\r\n\r\n');
        const received = await attacker.pod.exchange(`${one.repeat(300)}${last}`, { untilClosed: true });
        const statuses = [...received.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status));
        // 400 where data arrives while Node has paused the parser (HPE_PAUSED): it then closes the connection, with or without earlier responses.
        const expected = [200, 400, 429, 503];
        assert.ok(statuses.length > 0 && statuses.every((status) => expected.includes(status)), statuses.join());
      },
      { named: 'request' },
    );
  });

  it('hundreds of requests that their client aborts at once leave nothing behind', async () => {
    await neighbours.survive(
      async (attacker) => {
        await flood(300, async () => {
          const ending = new AbortController();
          const call = attacker.call('POST', '/v1/messages/next', { body: { waitSeconds: 60 }, signal: ending.signal });
          setImmediate(() => ending.abort());
          return call;
        });
        await neighbours.fixture.nats.connect('gateway');
      },
      { named: 'address' },
    );
    assert.ok((await neighbours.metric('temper_long_polls')) < 16);
  });

  it('thousands of long polls of one pod are refused beyond its share, and the audit stream names its agent', async () => {
    let name = '';
    await neighbours.survive(async (attacker) => {
      ({ name } = attacker);
      const ending = new AbortController();
      const refused = Promise.withResolvers<void>();
      const polls = Array.from({ length: 30 }, async () => {
        for (let round = 0; round < 25 && !ending.signal.aborted; round += 1) {
          const options = { body: { waitSeconds: 60 }, signal: ending.signal };
          const held = await attacker.call('POST', '/v1/messages/next', options).catch(() => undefined);
          if (held?.status === 429) refused.resolve();
        }
      });
      await refused.promise;
      ending.abort();
      await Promise.all(polls);
      const call = () => attacker.call('POST', '/v1/messages/next', { body: '[' });
      assertStatuses(await flood(300, call, 32), [400, 429]);
    });
    const audit = createNatsAudit(await neighbours.fixture.nats.connect('gateway'));
    const isNamed = ({ action, subject }: { action: string; subject: string }) =>
      action === 'agent.refused' && subject === name;
    const named = await pollValue(
      'the record of the agent',
      async () => (await audit.all('team-a', 10_000)).filter(isNamed),
      (records) => records.length > 0,
    );
    assert.deepEqual(
      named.map(({ actor, evidence }) => [actor, evidence]),
      [[`agent/${name}`, 'observed']],
    );
  });

  it('a ServiceAccount that floods an agent over A2A with messages, streams and large bodies is held to its shares', async () => {
    const a2a = { enabled: true, callers: [{ serviceAccount: 'other' }] };
    await neighbours.survive(
      async ({ pod, namespace, name }) => {
        const token = await neighbours.fixture.createToken(namespace, 'other', { audiences: ['temper-a2a'] });
        const call = (id: string, method: string, text: string, signal?: AbortSignal) => {
          const message = { messageId: id, role: 'ROLE_USER', parts: [{ text }] };
          const params = { message, configuration: { returnImmediately: true } };
          const options = { token, headers: { 'a2a-version': '1.0' }, body: { jsonrpc: '2.0', id, method, params } };
          const path = a2aPath(namespace, name);
          return pod.call('POST', path, signal === undefined ? options : { ...options, signal });
        };
        // Streams that stay open until their caller ends them: no pod answers.
        const held = new AbortController();
        const streams = flood(24, (index) => call(`s-${index}`, 'SendStreamingMessage', 'x', held.signal), 24);
        const began = performance.now();
        const messages = await flood(300, (index) => call(`m-${index}`, 'SendMessage', 'x'));
        // On a slow machine the share grows as fast as the messages come.
        const share = PEER_BURST + (PEER_PER_SECOND * (performance.now() - began)) / 1_000;
        assertStatuses(messages, [0, 200, 429], share < 300 ? [200, 429] : [200]);
        assert.ok((messages.get(200) ?? 0) <= share, `${messages.get(200)} messages of a share of ${share}`);
        const large = 'x'.repeat(600_000);
        assertStatuses(await flood(8, (index) => call(`l-${index}`, 'SendMessage', large)), [0, 413, 429]);
        held.abort();
        await streams;
      },
      { spec: { a2a }, named: 'request' },
    );
  });
});
