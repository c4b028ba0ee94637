import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { DELIVERY_TOKEN_HEADER } from '../../../../src/gateway-api/pod-api.ts';
import { createNatsAudit } from '../../../../src/nats/audit.ts';
import { assertStatuses, flood } from '../../../support/gateway/neighbours/flood.ts';
import { NoisyNeighbours } from '../../../support/gateway/neighbours/noisy-neighbours.ts';
import type { Tenant } from '../../../support/gateway/neighbours/tenant.ts';
import { pollValue } from '../../../support/poll.ts';

const TIME = '2026-01-01T00:00:00.000Z';

/** An event of a session, as a pod reports it. */
function eventOf(session: string, members: object): object {
  return { time: TIME, agent: 'victim', session, rootMessage: 'm', ...members };
}

/** Appends texts to the session of the delivery until the gateway refuses by a limit of size. Returns the last status. */
async function fill(attacker: Tenant, session: string, bytes: number): Promise<number> {
  const { deliveryToken } = await attacker.deliver(session);
  for (let afterSeq = 0; ; afterSeq += 1) {
    const body = { deliveryToken, afterSeq, items: [{ role: 'user', text: 'x'.repeat(bytes) }] };
    const append = () =>
      attacker.call('POST', `/v1/sessions/${session}/items`, { body, key: `fill-${session}-${afterSeq}` });
    const { status } = await pollValue(
      'an append within the rate',
      append,
      (response) => ![429, 503].includes(response.status),
    );
    if (status !== 200) return status;
  }
}

describe('a hostile pod that misuses storage, reports and messages', { timeout: 600_000 }, () => {
  let neighbours: NoisyNeighbours;

  before(async () => {
    neighbours = await NoisyNeighbours.start();
  });
  after(async () => {
    await neighbours?.[Symbol.asyncDispose]();
  });

  const report = (attacker: Tenant, body: object, key: string) => attacker.call('POST', '/v1/reports', { body, key });

  it('a history that is filled to its limit, and read without reading the responses, costs only its agent', async () => {
    await neighbours.survive(async (attacker) => {
      assert.equal(await fill(attacker, 's-full', 1_900_000), 413);
      const request = `GET /v1/sessions/s-full HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer ${attacker.token}\r\n\r\n`;
      const unread = await Promise.all(Array.from({ length: 20 }, () => attacker.pod.open()));
      for (const socket of unread) socket.pause().write(request.repeat(3));
      await pollValue(
        'the refusal of a further load',
        () => attacker.call('GET', '/v1/sessions/s-full'),
        ({ status }) => status === 429,
      );
    });
  });

  it('a flood of appends with wrong positions conflicts with no other agent', async () => {
    await neighbours.survive(async (attacker) => {
      const { deliveryToken } = await attacker.deliver('s-attack');
      const call = (index: number) => {
        const body = {
          deliveryToken,
          afterSeq: index * 1_000 + 7,
          items: [{ role: 'user', text: 'x' }],
          tainted: true,
        };
        return attacker.call('POST', '/v1/sessions/s-attack/items', { body, key: `wrong-${index}` });
      };
      assertStatuses(await flood(300, call), [409, 429], [409]);
    });
  });

  it('a memory that is filled, and searched with the longest queries, blocks no other agent', async () => {
    const text = Array.from({ length: 8_000 }, (_, index) => `w${index % 97}`).join(' ');
    const query = encodeURIComponent(
      Array.from({ length: 340 }, (_, index) => `w${index}`)
        .join(' ')
        .slice(0, 1_024),
    );
    await neighbours.survive(async (attacker) => {
      const { deliveryToken } = await attacker.deliver('s-memory');
      const headers = { [DELIVERY_TOKEN_HEADER]: deliveryToken };
      const put = (index: number) =>
        attacker.call('PUT', `/v1/memory/self.${index}`, {
          body: { value: text.repeat(2) },
          key: `memory-${index}`,
          headers,
        });
      assertStatuses(await flood(300, put, 48), [204, 413, 422, 429], [204]);
      const search = () => attacker.call('GET', `/v1/memory?query=${query}&limit=20`, { headers });
      assertStatuses(await flood(60, search, 16), [200, 429], [429]);
      assertStatuses(
        await flood(300, () => attacker.call('GET', '/v1/memory/other.key', { headers }), 48),
        [403, 404, 429],
      );
    });
  });

  it('reports beyond the rate of an agent are refused and counted, and no record of another agent is lost', async () => {
    const facts = { text: 'x'.repeat(15_000) };
    const record = { action: 'noise', actor: 'agent/victim', evidence: 'observed', subject: 'round-1', facts };
    await neighbours.survive(async (attacker) => {
      const body = { audit: Array.from({ length: 30 }, () => record) };
      assertStatuses(await flood(60, (index) => report(attacker, body, `noise-${index}`)), [0, 204, 429], [204, 429]);
    });
    assert.ok((await neighbours.metric('temper_report_bytes_rejected_total')) > 0);
    const audit = await createNatsAudit(await neighbours.fixture.nats.connect('gateway')).all('team-a', 10_000);
    const noise = audit.filter(({ action }) => action === 'noise');
    assert.ok(noise.length > 0);
    assert.ok(noise.every(({ evidence, actor }) => evidence === 'reported' && actor.startsWith('agent/attacker-')));
  });

  it('events of foreign and invented sessions, and verdicts that a pod invents, reach no reader', async () => {
    await neighbours.survive(async (attacker) => {
      const noise = (session: string) => eventOf(session, { type: 'message', text: 'forged', delta: false });
      const invented = [
        ...Array.from({ length: 400 }, (_, index) => noise(`invented-${index}`)),
        ...Array.from({ length: 20 }, (_, index) => noise(`round-${index}`)),
        eventOf('round-1', { type: 'forge-accepted', tool: 't', digest: 'd', tier: 'Shared' }),
        eventOf('round-1', { type: 'approval-decided', request: 'r', decision: 'Approve', by: 'person/root' }),
      ];
      // Each event counts, however small it is.
      const call = (index: number) => report(attacker, { events: invented }, `events-${index}`);
      assertStatuses(await flood(20, call, 4), [204, 429], [204, 429]);
      const { text } = await attacker.userCall('GET', `/agents/${attacker.name}/sessions/invented-1/events`);
      assert.equal(text, '');
      assert.equal((await report(attacker, { events: [noise('../victim')] }, 'path')).status, 400);
      assert.equal((await report(attacker, { events: [{ ...noise('s'), type: 'reply' }] }, 'reply')).status, 400);
    });
  });

  it('a session that is flooded with events keeps its reply, and readers of other sessions notice nothing', async () => {
    await neighbours.survive(async (attacker) => {
      const { deliveryToken } = await attacker.deliver('s-flood');
      const event = eventOf('s-flood', { type: 'message', text: 'x'.repeat(10_000), delta: true });
      const body = { events: Array.from({ length: 40 }, () => event) };
      assertStatuses(
        await flood(30, (index) => report(attacker, body, `flood-${index}`), 8),
        [0, 204, 429],
        [204, 429],
      );
      const outcome = { deliveryToken, action: 'ack', reply: 'the reply', finishReason: 'complete' };
      assert.equal((await attacker.call('POST', '/v1/deliveries', { body: outcome })).status, 204);
      const { text } = await attacker.userCall('GET', `/agents/${attacker.name}/sessions/s-flood/events`);
      assert.ok(text.includes('the reply'));
    });
  });

  it('uses of invented tools create no statistics and stay within the rate of their agent', async () => {
    const digest = (index: number) => `sha256:${index.toString(16).padStart(64, '0')}`;
    const use = (index: number) => ({
      agent: 'victim',
      namespace: 'team-b',
      session: 'round-1',
      digest: digest(index),
      evidence: 'observed',
      rootMessage: 'm',
      input: { value: 'x'.repeat(10_000) },
      succeeded: true,
      milliseconds: 1,
      time: TIME,
    });
    await neighbours.survive(async (attacker) => {
      const call = (round: number) =>
        report(attacker, { uses: Array.from({ length: 40 }, (_, index) => use(round * 40 + index)) }, `uses-${round}`);
      // As many as fit into the burst, and more.
      assertStatuses(await flood(30, call, 8), [0, 204, 429], [204, 429]);
      const { text } = await attacker.userCall('GET', `/agents/${attacker.name}/tools`);
      assert.equal(text, '[]');
    });
  });

  it('spans beyond the rate of an agent, or of foreign traces, are refused and counted', async () => {
    await neighbours.survive(async (attacker) => {
      const { deliveryToken } = await attacker.deliver('s-attack');
      const span = {
        traceId: 'a'.repeat(32),
        spanId: 'b'.repeat(16),
        name: 'x',
        kind: 'INTERNAL',
        start: [1, 0],
        end: [2, 0],
        failed: false,
        attributes: {},
      };
      const call = () =>
        attacker.call('POST', '/v1/traces', {
          body: { deliveryToken, spans: Array.from({ length: 200 }, () => span) },
        });
      assertStatuses(await flood(60, call), [0, 400, 429]);
    });
    assert.ok((await neighbours.metric('temper_pod_spans_total{outcome="refused"}')) > 0);
  });

  it('users of one namespace who follow sessions without end have no more than their share of streams', async () => {
    await neighbours.survive(async (attacker) => {
      const path = `/v1/users/namespaces/team-a/agents/${attacker.name}/sessions/s-attack/events?follow=true`;
      const request = `GET ${path} HTTP/1.1\r\nHost: g\r\nTemper-Token: ${attacker.userToken}\r\n\r\n`;
      await pollValue(
        'the streams that the users may have',
        async () => {
          const follow = async () => {
            (await attacker.pod.open()).write(request);
            return { status: 0 };
          };
          await flood(32, follow);
          return neighbours.metric('temper_long_polls');
        },
        (streams) => streams >= 256,
        { intervalMs: 10 },
      );
      assert.match(await attacker.pod.exchange(request), /^HTTP\/1\.1 429/);
      assert.equal((await attacker.call('GET', '/v1/sessions/%00')).status, 400);
    });
  });

  it('a pod that returns its message again and again delays its own agent, and no other', async () => {
    await neighbours.survive(async (attacker) => {
      assert.equal((await attacker.send('s-again')).status, 200);
      let received = 0;
      const receiveAndReturn = async (waitSeconds: number) => {
        const next = await attacker.call('POST', '/v1/messages/next', { body: { waitSeconds, restarted: true } });
        if (next.status !== 200) return next;
        received += 1;
        const { deliveryToken } = JSON.parse(next.text) as { deliveryToken: string };
        return attacker.call('POST', '/v1/deliveries', { body: { deliveryToken, action: 'retry', delayMs: 0 } });
      };
      assert.equal((await receiveAndReturn(30)).status, 204);
      await flood(60, () => receiveAndReturn(0), 4);
      // After its deliveries the message is a dead letter.
      assert.ok(received > 0 && received < 60, `${received} deliveries`);
      assert.equal((await attacker.call('POST', '/v1/deliveries', { body: { action: 'ack' } })).status, 400);
    });
  });

  it('messages to other namespaces, to many agents and down a chain are refused', async () => {
    await neighbours.survive(async (attacker) => {
      const { deliveryToken } = await attacker.deliver('s-attack');
      const send = (to: string, index: number, session = 's') =>
        attacker.call('POST', '/v1/messages', {
          body: { deliveryToken, draft: { to, session, text: 'x'.repeat(10_000) } },
          key: `message-${index}`,
        });
      for (const [index, to] of ['victim', 'team-b/victim', 'attacker-1', '*', '>', 'a.b', ''].entries()) {
        const { status, text } = await send(to, index);
        assert.ok([400, 403, 404, 422].includes(status), `${to}: ${status} ${text}`);
      }
      assertStatuses(await flood(100, (index) => send('victim', index + 100)), [403, 404, 422, 429]);
    });
  });

  // Last, because the waiting messages of the namespace of all attackers reach their limit.
  it('messages of users that fill the inbox of their agent take the inbox of no other', async () => {
    await neighbours.survive(async (attacker) => {
      const text = 'x'.repeat(60_000);
      const call = (index: number) =>
        attacker.userCall('POST', `/agents/${attacker.name}/messages`, {
          key: `fill-${index}`,
          body: { text, session: `s-${index}` },
        });
      assertStatuses(await flood(500, call, 32), [200, 413, 429], [200, 413]);
      assert.equal((await attacker.call('GET', '/v1/sessions/%00')).status, 400);
    });
  });
});
