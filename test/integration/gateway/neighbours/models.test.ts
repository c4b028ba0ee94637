import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { canonicalJson, digestOf } from '../../../../src/lib/canonical.ts';
import type { Json } from '../../../../src/lib/json.ts';
import { createNatsAudit } from '../../../../src/nats/audit.ts';
import { anArtifact } from '../../../../src/tempering/tempering.testing.ts';
import { assertStatuses, flood } from '../../../support/gateway/neighbours/flood.ts';
import { NoisyNeighbours } from '../../../support/gateway/neighbours/noisy-neighbours.ts';
import type { Tenant } from '../../../support/gateway/neighbours/tenant.ts';

const TEXT = { role: 'user', text: 'hello' };

/** The spec of an agent whose model fails in the way that its name says. */
function withModel(name: string, more: object = {}): object {
  return { model: { primary: `default/${name}` }, ...more };
}

describe('a hostile pod that misuses models and reviews', { timeout: 600_000 }, () => {
  let neighbours: NoisyNeighbours;

  before(async () => {
    neighbours = await NoisyNeighbours.start();
  });
  after(async () => {
    await neighbours?.[Symbol.asyncDispose]();
  });

  /** Calls of a model of the attacker, each in the message of the delivery. */
  async function callsOf(attacker: Tenant, model: string, change: object = {}) {
    const { deliveryToken } = await attacker.deliver('s-attack');
    const request = {
      model: `default/${model}`,
      system: '',
      messages: [TEXT],
      tools: [],
      maxOutputTokens: 100,
      ...change,
    };
    return (signal?: AbortSignal) =>
      attacker.call('POST', '/v1/models/stream', {
        body: { deliveryToken, request },
        ...(signal === undefined ? {} : { signal }),
      });
  }

  for (const [model, what] of [
    ['echo', 'errors that repeat the words of an exhausted account'],
    ['limited', 'rate limits'],
    ['broken', 'server errors'],
  ] as const) {
    it(`${what} of one agent take the provider from no other agent`, async () => {
      await neighbours.survive(
        async (attacker) => {
          const call = await callsOf(attacker, model);
          assertStatuses(await flood(20, () => call(), 4), [200, 422, 429]);
        },
        { spec: withModel(model), named: 'request' },
      );
      const open = await neighbours.metric('temper_model_circuits_open{provider="replay",scope="provider"}');
      assert.equal(open, 0);
      const outcomes = Array.from((await neighbours.metrics()).keys()).filter(
        (sample) => sample.startsWith('temper_model_requests_total') && sample.includes(`model="${model}"`),
      );
      assert.ok(
        outcomes.some((sample) => !sample.includes('outcome="ok"')),
        outcomes.join(),
      );
    });
  }

  it('answers that never come occupy the share of their own agent', async () => {
    await neighbours.survive(
      async (attacker) => {
        const call = await callsOf(attacker, 'slow');
        const ending = new AbortController();
        const waiting = Array.from({ length: 16 }, () => call(ending.signal).catch(() => undefined));
        while ((await attacker.call('GET', '/v1/sessions/s-attack')).status !== 429);
        ending.abort();
        await Promise.all(waiting);
      },
      { spec: withModel('slow') },
    );
  });

  it('answers that their reader leaves after the first words are charged to their own agent', async () => {
    await neighbours.survive(
      async (attacker) => {
        const call = await callsOf(attacker, 'dripping', { messages: [{ role: 'user', text: 'x'.repeat(100_000) }] });
        await flood(20, () => call(AbortSignal.timeout(200)), 8);
        const { text } = await attacker.userCall('GET', `/agents/${attacker.name}/usage`);
        const { windows } = JSON.parse(text) as {
          windows: { window: string; inputTokens: number; inFlightTokens: number }[];
        };
        const day = windows.find(({ window }) => window === 'day');
        assert.ok((day?.inputTokens ?? 0) + (day?.inFlightTokens ?? 0) > 20_000, text);
      },
      { spec: withModel('dripping'), named: 'request' },
    );
  });

  it('an agent without quota left is refused, and the quota of others is untouched', async () => {
    await neighbours.survive(
      async (attacker) => {
        const call = await callsOf(attacker, 'default', { messages: [{ role: 'user', text: 'x'.repeat(3_000) }] });
        assertStatuses(await flood(50, () => call(), 4), [200, 429], [429]);
      },
      { spec: { quotas: { tokensPerHour: 2_000 } } },
    );
    const denied = Array.from(await neighbours.metrics()).filter(([name]) =>
      name.startsWith('temper_quota_denials_total'),
    );
    assert.ok(denied.some(([, count]) => count > 0));
  });

  it('requests with thousands of messages, hostile schemas and invented models are refused or cost their own agent', async () => {
    let schema: Json = {};
    for (let depth = 0; depth < 80; depth += 1) schema = { properties: { a: schema } };
    const tool = (inputSchema: Json) => ({ name: 't', description: '', inputSchema });
    await neighbours.survive(async (attacker) => {
      const { deliveryToken } = await attacker.deliver('s-attack');
      const base = {
        model: 'default/default',
        system: '',
        messages: [TEXT],
        tools: [] as unknown[],
        maxOutputTokens: 100,
      };
      for (const request of [
        { ...base, messages: Array.from({ length: 5_001 }, () => TEXT) },
        { ...base, messages: Array.from({ length: 100 }, () => ({ role: 'user', text: '漢'.repeat(20_000) })) },
        { ...base, tools: Array.from({ length: 257 }, () => tool({ type: 'object' })) },
        { ...base, tools: [tool(schema)] },
        { ...base, tools: [tool({ type: 'exceeded your current quota' })] },
        { ...base, tools: [tool({ description: 'x'.repeat(1_000_000) })] },
        ...['gpt-invented', 'default/judge', '../judge', 'replay/judge', '__proto__'].map((model) => ({
          ...base,
          model,
        })),
      ]) {
        const body = { deliveryToken, request };
        const { status, text } = await attacker.call('POST', '/v1/models/stream', { body });
        const isRefused = (status >= 400 && status < 500) || text.startsWith('{"type":"error"');
        assert.ok(isRefused, `${status} ${text.slice(0, 300)}`);
      }
    });
    const labels = Array.from((await neighbours.metrics()).keys()).filter((name) => name.includes('model="'));
    assert.ok(!labels.some((name) => name.includes('gpt-invented')), labels.join());
  });

  it('a flood of texts to embed is held to the share of its agent', async () => {
    await neighbours.survive(async (attacker) => {
      const body = { texts: Array.from({ length: 64 }, () => 'x'.repeat(32_000)) };
      assertStatuses(await flood(30, () => attacker.call('POST', '/v1/models/embed', { body })), [0, 200, 422, 429]);
    });
  });

  it('a pod cannot call a model, send, or append with a delivery of another session, agent or key', async () => {
    await neighbours.survive(async (attacker) => {
      const { deliveryToken } = await attacker.deliver('s-attack');
      const other = await neighbours.attacker();
      const { deliveryToken: foreign } = await other.deliver('s-attack');
      other[Symbol.dispose]();
      const [payload = '', signature = ''] = deliveryToken.split('.');
      const request = { model: 'default/default', system: '', messages: [TEXT], tools: [], maxOutputTokens: 100 };
      for (const token of [
        foreign,
        `${payload}.${'A'.repeat(signature.length)}`,
        `${payload}x.${signature}`,
        payload,
        'x'.repeat(4_000),
      ]) {
        const calls = [
          attacker.call('POST', '/v1/models/stream', { body: { deliveryToken: token, request } }),
          attacker.call('POST', '/v1/deliveries', { body: { deliveryToken: token, action: 'extend' } }),
          attacker.call('POST', '/v1/discovery/search', { body: { deliveryToken: token, query: 'a' } }),
        ];
        for (const { status, text } of await Promise.all(calls))
          assert.ok([400, 403].includes(status), `${status} ${text}`);
      }
      const body = { deliveryToken, afterSeq: 0, items: [TEXT] };
      assert.equal((await attacker.call('POST', '/v1/sessions/round-1/items', { body, key: 'k' })).status, 403);
    });
  });

  it('tools whose check is expensive take the time of their own agent only', async () => {
    const hostile = (serial: number): Json => {
      const pattern = (index: number) => `^(?:[a-z]{1,20}|[0-9]{1,${(index % 20) + 2}}){1,20}x${serial}$`;
      const properties = Object.fromEntries(
        Array.from({ length: 100 }, (_, index) => [`p${index}`, { pattern: pattern(index), type: 'string' }]),
      );
      const inputSchema = canonicalJson({ properties, type: 'object' });
      return anArtifact(`hostile_${serial}`, { inputSchema }) as unknown as Json;
    };
    await neighbours.survive(async (attacker) => {
      const submit = await submitter(attacker);
      assertStatuses(
        await flood(45, (index) => submit(hostile(index), `hostile-${index}`), 15),
        [200, 429],
        [200, 429],
      );
    });
    const reviews = Array.from(await neighbours.metrics()).filter(([name]) =>
      name.startsWith('temper_forge_reviews_total'),
    );
    assert.ok(reviews.length > 0);
  });

  it('one tool that is submitted again and again stays one tool, and is refused beyond the rate of its agent', async () => {
    await neighbours.survive(async (attacker) => {
      const submit = await submitter(attacker);
      const artifact = anArtifact('double') as unknown as Json;
      assertStatuses(await flood(150, (index) => submit(artifact, `again-${index}`), 8), [200, 429], [200, 429]);
      const { status, text } = await submit(artifact, 'again');
      assert.equal(status, 429);
      assert.match(text, /tools for review .* one per 10 s/);
      const tools = await attacker.userCall('GET', `/agents/${attacker.name}/tools`);
      assert.ok((JSON.parse(tools.text) as unknown[]).length <= 1, tools.text);
    });
  });

  it('reports of refused tools are refused beyond the rate of their agent', async () => {
    await neighbours.survive(async (attacker) => {
      const { deliveryToken } = await attacker.deliver('s-attack');
      const refused = {
        name: 'x',
        gate: 'tests',
        code: 'TEMPER_FORGE_TEST_FAILED',
        class: 'Wrong',
        message: 'm'.repeat(4_000),
        details: {},
        gates: [],
      };
      const call = (index: number) =>
        attacker.call('POST', '/v1/forge/rejected', { body: { deliveryToken, refused }, key: `refused-${index}` });
      assertStatuses(await flood(150, call, 8), [204, 429], [204, 429]);
    });
  });

  it('searches with the longest queries are held to the share of their agent', async () => {
    const query = Array.from({ length: 200 }, (_, index) => String.fromCodePoint(0x4e00 + index)).join(' ');
    const create = async (index: number) => {
      const spec = { type: 'Skill', description: `${query} ${index}`, content: 'x' };
      const object = {
        apiVersion: 'temper.dev/v1alpha1',
        kind: 'Capability',
        metadata: { name: `long-${index}` },
        spec,
      };
      await neighbours.fixture.create('/apis/temper.dev/v1alpha1/namespaces/team-a/capabilities', object);
      return { status: 201 };
    };
    assertStatuses(await flood(200, create), [201]);
    await neighbours.survive(
      async (attacker) => {
        const { deliveryToken } = await attacker.deliver('s-attack');
        const call = () => attacker.call('POST', '/v1/discovery/search', { body: { deliveryToken, query } });
        const { text } = await call();
        assert.match(text, /"skill:long-/);
        assertStatuses(await flood(300, call, 16), [200, 429], [200]);
      },
      { named: 'request' },
    );
  });

  it('a flood of records about the sessions of one agent keeps no verdict of its namespace from being recorded', async () => {
    const bus = await neighbours.fixture.nats.connect('operator');
    const { manager } = bus;
    const { config, state } = await manager.streams.info('temper-audit', { subjects_filter: 'temper.audit.team-a' });
    const before = state.subjects?.['temper.audit.team-a'] ?? 0;
    // The namespace may have fewer records of decisions than the flood has records.
    await manager.streams.update('temper-audit', { max_msgs_per_subject: before + 5 });
    await neighbours.survive(
      async (attacker) => {
        const closed = async (index: number) => {
          const session = `s-flood-${index}`;
          const sent = await attacker.send(session);
          const path = `/agents/${attacker.name}/sessions/${session}?endWork=true`;
          return sent.status === 200 ? attacker.userCall('DELETE', path) : sent;
        };
        const counts = await flood(60, closed, 4);
        assertStatuses(counts, [200, 429], [200]);
        assert.ok((counts.get(200) ?? 0) > 10, 'the flood has more records than the namespace may have');
        using colleague = await neighbours.attacker();
        const submit = await submitter(colleague);
        const { status, text } = await submit(anArtifact() as unknown as Json, 'after-the-flood');
        assert.equal(status, 200, text);
        const verdicts = await createNatsAudit(bus).read('team-a', 'observed', 0, 10_000);
        assert.ok(verdicts.some(({ actor }) => actor === `agent/${colleague.name}`));
      },
      { named: 'request' },
    );
    assert.equal(await neighbours.metric('temper_audit_rejected_total'), 0);
    await manager.streams.update('temper-audit', { max_msgs_per_subject: config.max_msgs_per_subject });
  });

  /** Submits artifacts for review, each with the given idempotency key. */
  async function submitter(attacker: Tenant) {
    const { deliveryToken } = await attacker.deliver('s-attack');
    const evidence = { tests: [], milliseconds: 1, heapBytes: 1, warnings: [] };
    return (artifact: Json, key: string) => {
      const candidate = { artifact, digest: digestOf(artifact), evidence };
      return attacker.call('POST', '/v1/forge/review', { body: { deliveryToken, candidate }, key });
    };
  }
});
