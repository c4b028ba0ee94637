import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { ToolArtifact } from '../../../src/api/v1alpha1/emergenttool.ts';
import { generateTextTool, TEXT_SYSTEM } from '../../../src/agent/tools/generate-text.ts';
import { createMemoryTools } from '../../../src/agent/tools/memory-tools.ts';
import { remoteModel } from '../../../src/gateway-client/model.ts';
import { ReportSender } from '../../../src/gateway-client/report-sender.ts';
import { remoteMemory } from '../../../src/gateway-client/stores.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { ulids } from '../../../src/lib/ids.ts';
import { CurrentMessage } from '../../../src/pod/agent/current-message.ts';
import { callOptions } from '../../support/call-options.ts';
import { ANSWER_SIGNATURE_HEADER, DELIVERY_TOKEN_HEADER } from '../../../src/gateway-api/pod-api.ts';
import type { Json } from '../../../src/lib/json.ts';
import { createNatsAudit } from '../../../src/nats/audit.ts';
import type { JetStreamConnection } from '../../../src/nats/connection/connection.ts';
import { STREAMS } from '../../../src/nats/jetstream/names.ts';
import { createToolEvidence } from '../../../src/nats/promotion/evidence.ts';
import { createSessionEvents } from '../../../src/nats/session-events.ts';
import { openSessionRegistry } from '../../../src/nats/sessions/session-registry.ts';
import { sessionTool } from '../../../src/tempering/registry/registered-tool.ts';
import { aCaller, anAcceptance, anArtifact } from '../../../src/tempering/tempering.testing.ts';
import type { EvidencedCall, RegisteredTool, ToolStatistics, ToolUse } from '../../../src/tempering/types.ts';
import { pollValue } from '../../support/poll.ts';
import { type Carried, honestReport, LIES, type Report, withUse } from '../../support/promotion/lies.ts';
import {
  aModelRequest,
  type HttpResponse,
  ModelGatewayFixture,
  type ModelGatewayReplica,
  type RequestOptions,
  streamEnd,
  streamLines,
  streamText,
} from '../../support/gateway/model-gateway-fixture.ts';
import { reviewModels } from '../../support/gateway/review-answers.ts';

const ROOTS = [1, 2, 3, 4, 5];
const MAX_BATCHES = 400;
const STEPS: ToolArtifact['implementation'] = {
  mode: 'Compose',
  steps: [{ name: 'look', tool: 'memory_search', inputMapping: '{"query":"$input.topic"}' }],
};

/** Repeats the request while the gateway is overloaded, as pods do. */
function ask(
  replica: ModelGatewayReplica,
  method: string,
  path: string,
  options: RequestOptions,
): Promise<HttpResponse> {
  const keyed = { key: ulids.next('key'), ...options };
  return pollValue(
    `a response to ${method} ${path}`,
    () => replica.call(method, path, keyed),
    ({ status }) => status !== 503,
  );
}

describe('reports of a lying pod', () => {
  let fixture: ModelGatewayFixture;
  let one: ModelGatewayReplica;
  let other: ModelGatewayReplica;
  let bus: JetStreamConnection;
  let operator: JetStreamConnection;
  let agents = 0;

  before(async () => {
    fixture = await ModelGatewayFixture.open({ rules: [{ answer: { text: 'a summary' } }] });
    fixture.setPolicy('standard', {
      level: { initial: 'standard', ceiling: 'standard' },
      models: { judge: 'default/judge', reviewers: ['replay/safety', 'replay/correctness'] },
    });
    const models = reviewModels(fixture.replay.url);
    [one, other] = await Promise.all([fixture.startReplica(models), fixture.startReplica(models)]);
    [bus, operator] = await Promise.all([fixture.nats.connect('gateway'), fixture.nats.connect('operator')]);
  });
  after(async () => {
    await fixture?.[Symbol.asyncDispose]();
  });

  async function anAgentWithTool(): Promise<{ name: string; uid: string; tool: RegisteredTool }> {
    agents += 1;
    const name = `agent-${agents}`;
    const uid = fixture.setAgent(name, {
      grants: { tools: ['*'], memory: { read: ['**'], write: ['**'] }, messages: ['*'] },
      forge: { enabled: true, modes: ['Compose'] },
    } as never);
    const caller = { agent: name, namespace: 'team-a', session: 's1', rootMessage: 'm', authorModel: 'replay/author' };
    const artifact = anArtifact(`look_up_${agents}`, { implementation: STEPS, outputSchema: '{}' });
    const tool = sessionTool(anAcceptance(artifact), caller, new Date().toISOString());
    await openSessionRegistry(bus).register(uid, tool, () => []);
    return { name, uid, tool };
  }

  const tokenOf = (agent: string, root: number): string =>
    fixture.deliveryToken(agent, 's1', `root-${root}`, `message-${root}`);

  async function carried(
    agent: string,
    root: number,
    call: { name: string; input: Json; value: Json; method: string; path: string; body?: unknown },
  ): Promise<Carried> {
    const { name, input, value, method, path, body } = call;
    const headers = { [DELIVERY_TOKEN_HEADER]: tokenOf(agent, root) };
    const response = await ask(one, method, path, { agent, headers, ...(body === undefined ? {} : { body }) });
    assert.ok(response.status < 300 || response.status === 404, response.text);
    const signature = response.headers[ANSWER_SIGNATURE_HEADER];
    assert.ok(typeof signature === 'string', `${name} has no signature`);
    return { signature, call: { name, input, answer: { ok: true, value }, evidence: 'reported' } };
  }

  const search = (agent: string, root: number): Promise<Carried> =>
    carried(agent, root, {
      name: 'memory_search',
      input: { query: `topic ${root}` },
      value: { hits: [] },
      method: 'GET',
      path: `/v1/memory?query=${encodeURIComponent(`topic ${root}`)}&limit=5`,
    });

  function aReport({ name, tool }: { name: string; tool: RegisteredTool }, root: number, carry: Carried[]): Report {
    const { digest } = tool;
    return honestReport(
      { agent: name, namespace: 'team-a', session: 's1', digest },
      { deliveryToken: tokenOf(name, root), rootMessage: `root-${root}` },
      { input: { value: root }, output: { hits: [] }, carried: carry },
    );
  }

  const statisticsOf = ({ uid, tool }: { uid: string; tool: RegisteredTool }): Promise<ToolStatistics> =>
    createToolEvidence(bus).statistics(uid, { digest: tool.digest, namespace: 'team-a' });

  const requests = async (): Promise<number> =>
    (await operator.manager.streams.info(STREAMS.promotions)).state.messages;

  it('what a gateway carried is observed at every replica: memory, messages and generated text', async () => {
    const agent = await anAgentWithTool();
    const receiver = await anAgentWithTool();
    const { name } = agent;
    const draft = { to: receiver.name, session: 's1', text: 'hello' };
    const key = 'the-message';
    const body = { deliveryToken: tokenOf(name, 1), draft };
    const sent = await ask(one, 'POST', '/v1/messages', { agent: name, key, body });
    const { id } = JSON.parse(sent.text) as { id: string };
    const prompt = { role: 'user' as const, text: 'Summarize.' };
    const request = aModelRequest({ system: TEXT_SYSTEM, messages: [prompt] });
    const lines = streamLines(
      await ask(one, 'POST', '/v1/models/stream', { agent: name, body: { deliveryToken: tokenOf(name, 1), request } }),
    );
    const text = streamText(lines);
    const generated = { name: 'generate_text', input: { prompt: prompt.text } };
    const notes = { method: 'PUT', path: '/v1/memory/notes', body: { value: ['red'] } };
    const all: Carried[] = [
      await carried(name, 1, {
        name: 'memory_set',
        input: { key: 'notes', value: ['red'] },
        value: { key: 'notes' },
        ...notes,
      }),
      await carried(name, 1, {
        name: 'memory_get',
        input: { key: 'notes' },
        value: { found: true, value: ['red'] },
        method: 'GET',
        path: '/v1/memory/notes',
      }),
      await search(name, 1),
      {
        call: { ...generated, answer: { ok: true, value: { text, output: text } }, evidence: 'reported' },
        signature: (streamEnd(lines) as { signature?: string }).signature ?? '',
      },
      {
        call: {
          name: 'agent_send',
          input: { to: receiver.name, text: 'hello' },
          answer: { ok: true, value: { id } },
          evidence: 'reported',
        },
        signature: String(sent.headers[ANSWER_SIGNATURE_HEADER]),
      },
    ];
    const reported = await ask(other, 'POST', '/v1/reports', { agent: name, body: aReport(agent, 1, all) });
    assert.equal(reported.status, 204, reported.text);
    assert.deepEqual((await statisticsOf(agent)).recordedInputs, { none: 0, observed: 1, reported: 0 });
    const tool = { digest: agent.tool.digest, namespace: 'team-a' };
    const [input] = await createToolEvidence(bus).recordedInputs(agent.uid, tool, 1_000_000);
    assert.deepEqual(
      input?.recording?.calls.map((call) => `${call.name} ${call.evidence}`),
      all.map(({ call }) => `${call.name} observed`),
    );
    const plain = streamLines(
      await ask(one, 'POST', '/v1/models/stream', {
        agent: name,
        body: { deliveryToken: tokenOf(name, 1), request: aModelRequest() },
      }),
    );
    assert.ok(!('signature' in streamEnd(plain)), 'a turn of the agent is no answer to a tool');
  });

  it('the client of a pod reports the signatures that it got with the answers of its tools', async () => {
    const agent = await anAgentWithTool();
    const current = new CurrentMessage();
    const client = await fixture.connect(agent.name, one, current.addSignature);
    const { deliveryToken, signal, reportToken, answerSignatures, addSignature: onAnswerSignature } = current;
    const shared = { client, clock: systemClock, ids: ulids };
    const memory = remoteMemory({ ...shared, deliveryToken, signal });
    const append = async () => undefined;
    const model = remoteModel({ client, deliveryToken, append, onStored: () => undefined, onAnswerSignature });
    const decide = () => ({ effect: 'Allow', reason: '', rule: '', risk: 'low' }) as const;
    const modelName = 'default/default';
    const tools = [
      ...createMemoryTools({ memory, decide, isTainted: () => false, onUntrusted: () => undefined }),
      generateTextTool({ model, clock: systemClock, modelName, maxOutputTokens: 100 }),
    ];
    const message = { deliveryToken: tokenOf(agent.name, 1), session: 's1', rootMessage: 'root-1' };
    await using reports = new ReportSender({
      ...shared,
      deliveryToken: reportToken,
      answerSignatures,
      onError: assert.fail,
    });
    await current.during({ ...message, signal: new AbortController().signal }, async () => {
      const calls: EvidencedCall[] = [];
      for (const [name, input] of [
        ['memory_get', { key: 'missing' }],
        ['memory_set', { key: 'notes', value: 'an anvil' }],
        ['memory_search', { query: 'anvil' }],
        ['memory_search', { query: 'anvil', limit: 2 }],
        ['memory_list', { prefix: 'no' }],
        ['memory_delete', { key: 'notes' }],
        ['generate_text', { prompt: 'Summarize.' }],
      ] as const) {
        const op = callOptions();
        const context = {
          ...aCaller({ agent: agent.name }),
          stack: [],
          origin: 'Agent' as const,
          op,
          invoke: assert.fail,
        };
        const value = await tools.find(({ descriptor }) => descriptor.name === name)?.call(input, context);
        calls.push({ name, input, answer: { ok: true, value: value ?? null }, evidence: 'reported' });
      }
      const [use] = aReport(agent, 1, []).uses;
      reports.use({ ...(use as never as ToolUse), recording: { ok: true, recording: { calls } } });
      await reports.flush(callOptions());
    });
    const tool = { digest: agent.tool.digest, namespace: 'team-a' };
    const [input] = await createToolEvidence(bus).recordedInputs(agent.uid, tool, 1_000_000);
    assert.deepEqual(
      input?.recording?.calls.map(({ name, evidence }) => [name, evidence]),
      [
        'memory_get',
        'memory_set',
        'memory_search',
        'memory_search',
        'memory_list',
        'memory_delete',
        'generate_text',
      ].map((name) => [name, 'observed']),
    );
  });

  it('five honest uses with observed answers request the promotion', async () => {
    const agent = await anAgentWithTool();
    const before = await requests();
    for (const root of ROOTS) {
      const body = aReport(agent, root, [await search(agent.name, root)]);
      assert.equal((await ask(other, 'POST', '/v1/reports', { agent: agent.name, body })).status, 204);
    }
    assert.deepEqual((await statisticsOf(agent)).recordedInputs, { none: 0, observed: 5, reported: 0 });
    assert.equal((await requests()) - before, 1);
  });

  it('uses in calls of programs of users count for no promotion', async () => {
    const agent = await anAgentWithTool();
    const before = await requests();
    for (const root of ROOTS) {
      const honest = aReport(agent, root, [await search(agent.name, root)]);
      const token = fixture.deliveryToken(agent.name, 's1', `root-${root}`, `message-${root}`, { isCall: true });
      const body = { ...honest, deliveryToken: token };
      assert.equal((await ask(one, 'POST', '/v1/reports', { agent: agent.name, body })).status, 204);
    }
    assert.equal((await statisticsOf(agent)).totalUses, 0);
    assert.equal(await requests(), before);
  });

  for (const [lie, change, { status = 204, counts = true } = {}] of LIES) {
    it(`a report with ${lie} opens no promotion and is no observed evidence`, async () => {
      const [agent, neighbour] = [await anAgentWithTool(), await anAgentWithTool()];
      const before = await requests();
      for (const root of ROOTS) {
        const honest = aReport(agent, root, [await search(agent.name, root)]);
        const later = aReport(agent, 9, [await search(agent.name, 9)]);
        const foreign = aReport(neighbour, root, [await search(neighbour.name, root)]);
        const response = await ask(one, 'POST', '/v1/reports', {
          agent: agent.name,
          body: change(honest, later, foreign),
        });
        assert.equal(response.status, status, response.text);
      }
      const { totalUses, recordedInputs } = await statisticsOf(agent);
      assert.deepEqual([totalUses, recordedInputs.observed], [counts ? ROOTS.length : 0, 0]);
      assert.equal((await statisticsOf(neighbour)).totalUses, 0, 'nothing counts for another agent');
      assert.equal(await requests(), before);
    });
  }

  it('invented origins within one message count once, and a repeated report counts once', async () => {
    const agent = await anAgentWithTool();
    const before = await requests();
    const token = tokenOf(agent.name, 1);
    const carry = await search(agent.name, 1);
    for (const root of ROOTS) {
      const body = {
        ...withUse(aReport(agent, root, [carry]), { rootMessage: `invented-${root}` }),
        deliveryToken: token,
      };
      for (const replica of [one, other]) {
        const response = await ask(replica, 'POST', '/v1/reports', { agent: agent.name, key: `report-${root}`, body });
        assert.equal(response.status, 204, response.text);
      }
    }
    const { totalUses, rootMessages } = await statisticsOf(agent);
    assert.deepEqual([totalUses, rootMessages], [5, 1]);
    assert.equal(await requests(), before);
  });

  it('invented verdicts and observed audit records stay out of the events and of the observed stream', async () => {
    const agent = await anAgentWithTool();
    const stamp = { session: 's1', rootMessage: 'root-1', agent: agent.name, time: '2026-01-01T00:00:00Z' };
    const { digest, artifact } = agent.tool;
    const events = [
      { type: 'promotion', tool: artifact.name, digest, state: 'Promoted', tier: 'Agent', reason: '', ...stamp },
      { type: 'forge-gate', tool: artifact.name, result: { gate: 'judge', passed: true, note: '1.00' }, ...stamp },
    ];
    const record = { action: 'tool.promoted', actor: 'system', evidence: 'observed', subject: digest, facts: {} };
    await ask(one, 'POST', '/v1/reports', { agent: agent.name, body: { events: [events[1]] } });
    await ask(one, 'POST', '/v1/reports', { agent: agent.name, body: { events: [events[0]] } });
    const response = await ask(one, 'POST', '/v1/reports', { agent: agent.name, body: { audit: [record] } });
    assert.equal(response.status, 204, response.text);
    assert.deepEqual(await createSessionEvents(bus).read(agent.uid, 's1', 0, 100), []);
    const records = (await createNatsAudit(bus).all('team-a', 10_000)).filter(({ subject }) => subject === digest);
    assert.deepEqual(
      records.map(({ action, evidence, actor }) => [action, evidence, actor]),
      [['tool.promoted', 'reported', `agent/${agent.name}`]],
    );
  });

  it('an agent that reports a thousand uses with the largest recordings stores no more than its own evidence', async () => {
    const [agent, quiet] = [await anAgentWithTool(), await anAgentWithTool()];
    const honest = aReport(quiet, 1, [await search(quiet.name, 1)]);
    const evidence = createToolEvidence(bus);
    const tool = { digest: agent.tool.digest, namespace: 'team-a' };
    const value = 'x'.repeat(240_000);
    const call: EvidencedCall = { name: 'file_read', input: {}, answer: { ok: true, value }, evidence: 'reported' };
    // On a fast machine the 19th is refused; on a slow one the rate permits more meanwhile.
    let refused = 0;
    for (let batch = 0; refused === 0 && batch < MAX_BATCHES; batch += 1) {
      const body = aReport(agent, batch + 1, [{ call, signature: `a1.${'A'.repeat(43)}` }]);
      const { status } = await ask(one, 'POST', '/v1/reports', { agent: agent.name, body });
      if (status === 204) continue;
      assert.equal(status, 429);
      refused += 1;
    }
    assert.equal(refused, 1, 'the rate of reports refuses some');
    const uses = Array.from({ length: 980 }, (_, index) => ({
      ...(aReport(agent, index, [{ call, signature: '' }]).uses[0] as never as Parameters<typeof evidence.count>[3][0]),
      rootMessage: `root-${index}`,
      input: { value: index },
    }));
    const quota = { reserved: 0 };
    const counting = createToolEvidence(bus, () => ({
      limits: undefined as never,
      reserve: async (_store, bytes) => void (quota.reserved += bytes),
      release: () => undefined,
      recount: async () => undefined,
    }));
    for (let at = 0; at < uses.length; at += 98)
      await counting.count(agent.uid, tool, `key-${at}`, uses.slice(at, at + 98));
    const statistics = await evidence.statistics(agent.uid, tool);
    const { none, observed, reported } = statistics.recordedInputs;
    assert.ok(none + observed + reported <= 18, `${reported} recordings of 240,000 bytes in 4 MiB`);
    assert.ok((statistics.unrecorded.StorageFull ?? 0) > 900, JSON.stringify(statistics.unrecorded));
    assert.ok(quota.reserved < 24 * 1_048_576, `${quota.reserved} bytes were written`);
    assert.equal((await ask(other, 'POST', '/v1/reports', { agent: quiet.name, body: honest })).status, 204);
    assert.equal((await statisticsOf(quiet)).recordedInputs.observed, 1, 'another agent pays nothing');
  });
});
