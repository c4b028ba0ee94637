import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import type { DiscoveryEntry } from '../../../src/discovery/entry.ts';
import type { DiscoveryResult } from '../../../src/discovery/port.ts';
import { type EmbeddingServer, startEmbeddingServer } from '../../support/embedding-server.ts';
import { ModelGatewayFixture, type ModelGatewayReplica } from '../../support/gateway/model-gateway-fixture.ts';
import { pollValue } from '../../support/poll.ts';

describe('discovery by meaning in a gateway', { timeout: 300_000 }, () => {
  let fixture: ModelGatewayFixture;
  let embedder: EmbeddingServer;
  let replica: ModelGatewayReplica;

  before(async () => {
    [fixture, embedder] = await Promise.all([
      ModelGatewayFixture.open({ rules: [{ answer: { text: 'yes' } }] }),
      startEmbeddingServer(),
    ]);
    fixture.setPolicy('standard', {});
    fixture.setAgent('analyst', { grants: { tools: ['file_read', 'pay_*'] } });
    fixture.setAgent('clerk', { grants: { tools: ['file_read'] } });
    replica = await fixture.startReplica({
      providers: [{ name: 'tei', type: 'openai-compatible', baseUrl: embedder.url }],
      discovery: { embedder: 'tei/concepts' },
    });
    setSkill('bulletin', 'Reports whether rain is near.');
    setTool('pay_debts', 'Settles what is open: an invoice.');
  });
  after(async () => {
    await fixture?.[Symbol.asyncDispose]();
    await embedder?.[Symbol.asyncDispose]();
  });
  beforeEach(() => {
    embedder.status = 200;
  });

  function setSkill(name: string, description: string): void {
    set({ id: `skill:${name}`, kind: 'skill', name, description, category: 'other', tags: [], requiredTools: [] });
  }

  function setTool(name: string, description: string): void {
    const request = { kind: 'Tool', name, category: 'file_system', action: 'code:read', forged: false } as const;
    set({
      id: `tool:${name}`,
      kind: 'tool',
      name,
      description,
      category: 'file_system',
      tags: [],
      requiredTools: [],
      request,
    });
  }

  function set(entry: DiscoveryEntry): void {
    const object = { metadata: { name: entry.name, namespace: 'team-a' }, entry };
    replica.catalog.capabilityChanged({ type: 'updated', key: `team-a/${entry.name}`, object } as never);
  }

  async function found(agent: string, query: string, more: object = {}): Promise<string[]> {
    const body = { query, ...more, deliveryToken: fixture.deliveryToken(agent) };
    const { status, text } = await replica.call('POST', '/v1/discovery/search', { agent, body });
    assert.equal(status, 200, text);
    return (JSON.parse(text) as DiscoveryResult).capabilities.map(({ id }) => id);
  }

  /** The first search of a namespace may use words alone while its entries are embedded. */
  function becomes(agent: string, query: string, id: string): Promise<string[]> {
    return pollValue(
      `${id} for "${query}"`,
      () => found(agent, query),
      (ids) => ids[0] === id,
    );
  }

  it('an agent finds a capability without its words, and pays for its query alone', async () => {
    await becomes('clerk', 'umbrella', 'skill:bulletin');
    const { inputTokens } = await fixture.dailyUsage(replica, 'clerk');
    const sent = embedder.requests.filter(([first]) => first === 'umbrella');
    assert.equal(sent.length, 1, 'later searches take the vector from the cache');
    assert.equal(inputTokens, 'umbrella'.length);
    assert.ok(embedder.requests.flat().some((text) => text.includes('Reports whether rain is near.')));
  });

  it('what an agent may not call is nowhere in its results, however near it is', async () => {
    await becomes('analyst', 'the bill that I owe', 'tool:pay_debts');
    assert.equal((await found('clerk', 'the bill that I owe')).includes('tool:pay_debts'), false);
  });

  it('for a message only tools that the agent can call are ranked, whatever else is near', async () => {
    const message = { forMessage: true };
    await becomes('analyst', 'umbrella', 'skill:bulletin');
    const ids = await found('analyst', 'I need an umbrella to read a file.', message);
    assert.equal(ids[0], 'tool:file_read');
    assert.ok(
      ids.every((id) => id.startsWith('tool:')),
      String(ids),
    );
    const withInvoice = await found('analyst', 'the invoice that I owe', message);
    assert.ok(!withInvoice.includes('tool:pay_debts'), 'no gateway executes this Capability');
  });

  it('a changed capability is found by its new meaning only', async () => {
    await becomes('clerk', 'umbrella', 'skill:bulletin');
    setSkill('bulletin', 'How dinner is made.');
    assert.equal((await found('clerk', 'umbrella')).includes('skill:bulletin'), false);
    await becomes('clerk', 'a recipe', 'skill:bulletin');
    setSkill('bulletin', 'Reports whether rain is near.');
  });

  it('an embedder that fails leaves the search by words, and a metric says so', async () => {
    embedder.status = 500;
    assert.deepEqual((await found('analyst', 'open invoices, please')).slice(0, 1), ['tool:pay_debts']);
    const metrics = await replica.metrics();
    assert.match(metrics, /temper_discovery_embeddings_total\{part="query",outcome="TEMPER_MODEL_[A-Z]+"\} [1-9]/);
    assert.match(metrics, /temper_discovery_embedding_cache_total\{outcome="hit"\} [1-9]/);
    assert.match(metrics, /temper_discovery_step_duration_seconds_count\{step="vectors"\} [1-9]/);
  });

  it('failures of searches do not take the provider from the models of the agent', async () => {
    embedder.status = 503;
    for (const query of ['one plane', 'two planes', 'three planes', 'four planes']) await found('clerk', query);
    embedder.status = 200;
    const body = { texts: ['rain'] };
    const { status, text } = await replica.call('POST', '/v1/models/embed', { agent: 'clerk', body });
    assert.equal(status, 200, text);
  });
});
