import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import { DELIVERY_TOKEN_HEADER } from '../../../src/gateway-api/pod-api.ts';
import type { ReplayScript } from '../../../src/models/replay/script/script.ts';
import { createModelHealthStore } from '../../../src/nats/model-health.ts';
import {
  aModelRequest,
  streamEnd,
  streamLines,
  ModelGatewayFixture,
  errorOf,
  type ModelGatewayReplica,
  streamText,
} from '../../support/gateway/model-gateway-fixture.ts';
import { parsePrometheusText } from '../../support/prometheus-text.ts';
import { poll, pollValue } from '../../support/poll.ts';
import { a2aPeersSuite } from './suites/a2a-peers.ts';
import { egressSuite } from './suites/egress.ts';
import { gitClonesSuite } from './suites/git-clones.ts';
import { mcpServersSuite } from './suites/mcp-servers.ts';
import { publishedMcpServersSuite } from './suites/published-mcp-servers.ts';
import { platformMcpServersSuite } from './suites/platform-mcp-servers.ts';
import { serviceToolsSuite } from './suites/service-tools.ts';

const USAGE = { inputTokens: 100, outputTokens: 20, cachedInputTokens: 0 };
const SCRIPT: ReplayScript = {
  rules: [
    { when: { model: 'broken' }, answer: { error: { status: 529, type: 'overloaded_error', message: 'too much' } } },
    {
      when: { model: 'busy' },
      answer: { error: { status: 429, type: 'rate_limit_error', message: 'slow down', retryAfter: 600 } },
    },
    {
      when: { model: 'slow' },
      answer: { text: 'one word after the other', usage: USAGE, delayMilliseconds: 2_000 },
    },
    { answer: { text: 'Quite well, thank you.', usage: USAGE } },
  ],
};

/** A proxy that accepts one API key and forwards requests to `upstream`. */
async function startKeyed(upstream: string, keys: { accepted: string }): Promise<Server> {
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await buffer(request);
    const { authorization } = request.headers;
    if (authorization !== `Bearer ${keys.accepted}`) {
      const error = { type: 'invalid_request_error', code: 'invalid_api_key', message: `bad key ${authorization}` };
      response.writeHead(401, { 'content-type': 'application/json' }).end(JSON.stringify({ error }));
      return;
    }
    const headers = { 'content-type': 'application/json' };
    const answered = await fetch(`${upstream}${request.url}`, { method: 'POST', headers, body });
    response.writeHead(answered.status, { 'content-type': answered.headers.get('content-type') ?? '' });
    response.end(await answered.text());
  };
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => response.destroy(error as Error));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return server;
}

describe('the model API of the gateway', () => {
  let fixture: ModelGatewayFixture;
  let keyed: Server;
  let one: ModelGatewayReplica;
  let other: ModelGatewayReplica;
  const keys = { accepted: 'the-first-key' };

  before(async () => {
    fixture = await ModelGatewayFixture.open(SCRIPT);
    keyed = await startKeyed(fixture.replay.url, keys);
    const keyedUrl = `http://127.0.0.1:${(keyed.address() as AddressInfo).port}`;
    const models = {
      providers: [
        {
          name: 'replay',
          type: 'openai',
          baseUrl: `${fixture.replay.url}/v1`,
          models: [{ name: 'scripted', inputPrice: 2, outputPrice: 10 }],
        },
        { name: 'responses', type: 'openai-responses', baseUrl: `${fixture.replay.url}/v1` },
        { name: 'failing', type: 'anthropic', baseUrl: fixture.replay.url },
        { name: 'mounted', type: 'openai', baseUrl: `${keyedUrl}/v1`, keyFile: join(fixture.folder, 'mount', 'key') },
        { name: 'keyed', type: 'openai', baseUrl: `${keyedUrl}/v1`, keyFile: join(fixture.folder, 'key') },
      ],
      aliases: { 'default/default': 'replay/scripted' },
    };
    fixture.setPolicy('standard', {});
    [one, other] = await Promise.all([fixture.startReplica(models), fixture.startReplica(models)]);
  });
  after(async () => {
    await fixture?.[Symbol.asyncDispose]();
    keyed?.close();
  });

  const stream = async (agent: string, request = aModelRequest(), replica = one, signal?: AbortSignal) =>
    replica.call('POST', '/v1/models/stream', {
      agent,
      body: { deliveryToken: fixture.deliveryToken(agent), request },
      ...(signal === undefined ? {} : { signal }),
    });

  it('a response is streamed line by line, and the usage is charged to the agent and its policy', async () => {
    fixture.setPolicy('counted', {});
    fixture.setAgent('anna', {}, 'counted');
    const answer = await stream('anna');
    const lines = streamLines(answer);
    assert.equal(answer.status, 200);
    assert.equal(streamText(lines), 'Quite well, thank you.');
    assert.deepEqual(streamEnd(lines).usage, USAGE);
    const { inputTokens, outputTokens, costMicros } = await fixture.dailyUsage(one, 'anna');
    assert.deepEqual([inputTokens, outputTokens, costMicros], [100, 20, 400]);
    await stream('anna', aModelRequest(), other);
    // A replica reports its own spend at once and the spend of the other replica after a commit.
    for (const replica of [one, other]) {
      await poll('the usage of both replicas', async () => {
        const { inputTokens, outputTokens } = await fixture.dailyUsage(replica, 'anna');
        return inputTokens === 200 && outputTokens === 40;
      });
    }
  });

  it('the request to the provider contains only known members, the output limit of the agent, and store: false', async () => {
    fixture.setAgent('bert', { model: { primary: 'responses/scripted', maxOutputTokens: 50 } });
    const hostile = {
      ...aModelRequest({ model: 'responses/scripted' }),
      previous_response_id: 'resp_1',
      store: true,
      tools: [
        {
          name: 'look',
          description: 'looks',
          inputSchema: { type: 'object' },
          type: 'web_search',
          server_url: 'https://evil.example',
        },
      ],
      messages: [{ role: 'user', text: 'hello', file_id: 'file_1', content: [{ type: 'image_url' }] }],
    };
    assert.equal((await stream('bert', hostile as ReturnType<typeof aModelRequest>)).status, 200);
    const body = fixture.replay.requests.at(-1)?.body;
    assert.deepEqual(body, {
      model: 'scripted',
      instructions: 'You help.',
      input: [{ type: 'message', role: 'user', content: 'hello' }],
      max_output_tokens: 50,
      store: false,
      stream: true,
      tools: [{ type: 'function', name: 'look', description: 'looks', parameters: { type: 'object' }, strict: false }],
    });
  });

  it('a model that the agent does not name, a denied model and an invalid request are rejected', async () => {
    fixture.setPolicy('narrow', { models: { allow: ['replay/*'] } });
    fixture.setAgent('carl', {}, 'narrow');
    fixture.setAgent('cleo', { model: { primary: 'keyed/scripted' } }, 'narrow');
    assert.deepEqual(errorOf(await stream('carl', aModelRequest({ model: 'keyed/scripted' }))), [
      403,
      'TEMPER_POLICY_DENIED',
    ]);
    assert.deepEqual(errorOf(await stream('cleo', aModelRequest({ model: 'keyed/scripted' }))), [
      403,
      'TEMPER_POLICY_DENIED',
    ]);
    assert.deepEqual(errorOf(await stream('carl', aModelRequest({ maxOutputTokens: -1 }))), [
      400,
      'TEMPER_REQUEST_INVALID',
    ]);
    const body = { deliveryToken: fixture.deliveryToken('cleo'), request: aModelRequest() };
    const stolen = await one.call('POST', '/v1/models/stream', { agent: 'carl', body });
    assert.deepEqual(errorOf(stolen), [403, 'TEMPER_DELIVERY_TOKEN_INVALID']);
  });

  it('a request above the quota is rejected on every replica with the time of the reset', async () => {
    fixture.setAgent('dora', { quotas: { tokensPerHour: 1_500 } });
    const statuses = [];
    for (const replica of [one, other, one, other]) {
      const answer = await stream('dora', aModelRequest({ maxOutputTokens: 1_300 }), replica);
      statuses.push(answer.status);
      if (answer.status === 429)
        assert.match(answer.text, /TEMPER_QUOTA_EXCEEDED.*spec\.quotas\.tokensPerHour.*resumes/);
    }
    assert.ok(statuses.includes(429), statuses.join());
    assert.equal(statuses[0], 200);
  });

  it('a renewed key takes effect, a rejected key is reported, and no key is logged', async () => {
    fixture.setAgent('emil', { model: { primary: 'keyed/scripted' } });
    const request = aModelRequest({ model: 'keyed/scripted' });
    assert.equal(streamText(streamLines(await stream('emil', request))), 'Quite well, thank you.');
    const health = createModelHealthStore(await fixture.nats.connect('operator'));
    const stateOf = async () => (await health.list()).find(({ provider }) => provider === 'keyed')?.state;
    keys.accepted = 'the-second-key';
    const [failed] = streamLines(await stream('emil', request));
    assert.equal(failed?.type === 'error' && failed.code, 'TEMPER_MODEL_UNAUTHORIZED');
    await pollValue(
      'the provider to be Unauthorized',
      () => stateOf(),
      (value) => value === 'Unauthorized',
    );
    await fixture.writeKey('the-second-key');
    assert.equal(streamText(streamLines(await stream('emil', request))), 'Quite well, thank you.');
    await pollValue(
      'the provider to be Available',
      () => stateOf(),
      (value) => value === 'Available',
    );
    const reported = JSON.stringify([failed, fixture.logLines, await health.list()]);
    assert.ok(!reported.includes('the-first-key') && !reported.includes('the-second-key'));
    const { inputTokens } = await fixture.dailyUsage(one, 'emil');
    assert.equal(inputTokens, 200, 'a rejected request is not charged');
  });

  it('a key replaced in a Secret volume takes effect, and a missing file does not stop the gateway', async () => {
    fixture.setAgent('erna', { model: { primary: 'mounted/scripted' } });
    const request = aModelRequest({ model: 'mounted/scripted' });
    const answered = async () => streamLines(await stream('erna', request)).at(-1);
    const missing = await answered();
    assert.ok(missing?.type === 'error' && missing.code === 'TEMPER_MODEL_UNAUTHORIZED');
    assert.match(missing.message, /provider "mounted" has no key/);
    const health = createModelHealthStore(await fixture.nats.connect('operator'));
    const state = async () => (await health.list()).find(({ provider }) => provider === 'mounted')?.state;
    await pollValue(
      'the provider to be Unauthorized',
      () => state(),
      (value) => value === 'Unauthorized',
    );
    for (const key of ['key-of-monday', 'key-of-tuesday']) {
      keys.accepted = key;
      await fixture.mountKey(key);
      assert.equal((await answered())?.type, 'end', `with ${key}`);
    }
    await pollValue(
      'the provider to be Available',
      () => state(),
      (value) => value === 'Available',
    );
    await fixture.mountKey(undefined);
    assert.equal((await answered())?.type, 'error');
    assert.equal(
      (await stream('erna', aModelRequest({ model: 'replay/scripted' }))).status,
      403,
      'policy is still applied',
    );
  });

  it('a fallback model responds for a failing provider, and the health report names it', async () => {
    fixture.setAgent('finn', { model: { primary: 'failing/busy', fallbacks: ['failing/broken', 'replay/scripted'] } });
    const request = aModelRequest({ model: 'failing/busy' });
    const lines = streamLines(await stream('finn', request));
    assert.equal(streamText(lines), 'Quite well, thank you.');
    for (let call = 0; call < 2; call += 1) await stream('finn', request);
    const health = createModelHealthStore(await fixture.nats.connect('operator'));
    await poll('the health report of the failing provider', async () => {
      const failing = (await health.list()).find(({ provider }) => provider === 'failing');
      return failing?.state === 'Unavailable' && failing.fallback === 'replay/scripted';
    });
  });

  it('a response without a working model ends with an error line and is not charged', async () => {
    fixture.setAgent('gert', { model: { primary: 'failing/busy' } });
    const lines = streamLines(await stream('gert', aModelRequest({ model: 'failing/busy' })));
    const last = lines.at(-1);
    assert.ok(last?.type === 'error' && ['TEMPER_MODEL_RATE_LIMITED', 'TEMPER_MODEL_UNAVAILABLE'].includes(last.code));
    assert.equal((await fixture.dailyUsage(one, 'gert')).outputTokens, 0);
  });

  it('a request that the pod cancels is charged at the count of the provider', async () => {
    fixture.setAgent('hugo', { model: { primary: 'replay/slow' } });
    const cancel = new AbortController();
    const before = fixture.replay.requests.length;
    const answer = stream('hugo', aModelRequest({ model: 'replay/slow', maxOutputTokens: 700 }), one, cancel.signal);
    await pollValue(
      'the request to reach the provider',
      () => fixture.replay.requests.length,
      (value) => value > before,
    );
    cancel.abort();
    await assert.rejects(answer);
    await pollValue(
      'the charge of the answer without a reader',
      async () => {
        const { inputTokens, outputTokens } = await fixture.dailyUsage(one, 'hugo');
        return [inputTokens, outputTokens].join();
      },
      (value) => value === '100,20',
    );
  });

  it('metrics count requests by provider, model and outcome and denials by quota scope, with no other names in labels', async () => {
    fixture.setAgent('ines', { model: { primary: 'keyed/made-up-by-a-team' } });
    await stream('ines', aModelRequest({ model: 'keyed/made-up-by-a-team' }));
    const pages = await Promise.all([one, other].map((replica) => replica.metrics()));
    const samples = pages.map((page) => parsePrometheusText(page).samples);
    const count = (labels: string): number =>
      samples.reduce((sum, found) => sum + (found.get(`temper_model_requests_total{${labels}}`) ?? 0), 0);
    assert.ok(count('provider="replay",model="scripted",outcome="ok"') > 0);
    assert.ok(count('provider="keyed",model="other",outcome="TEMPER_MODEL_UNAUTHORIZED"') > 0);
    assert.ok(count('provider="replay",model="other",outcome="cancelled"') > 0);
    const denied = 'temper_quota_denials_total{scope="agent",quota="tokensPerHour"}';
    assert.ok(samples.some((found) => (found.get(denied) ?? 0) > 0));
    for (const page of pages) assert.doesNotMatch(page, /made-up|ines|dora|uid-|slow/);
  });

  it('a session history needs the delivery token of the session, and one of two concurrent writers succeeds', async () => {
    fixture.setAgent('ines');
    const append = async (session: string, afterSeq: number, tokenSession = 's1', replica = one) =>
      replica.call('POST', `/v1/sessions/${session}/items`, {
        agent: 'ines',
        body: {
          deliveryToken: fixture.deliveryToken('ines', tokenSession),
          afterSeq,
          items: [{ role: 'user', text: replica === one ? 'by one' : 'by the other', message: 'msg-1', more: 'x' }],
          tainted: afterSeq === 1,
        },
      });
    assert.equal((await append('s1', 0)).status, 200);
    assert.deepEqual(errorOf(await append('s2', 0)), [403, 'TEMPER_DELIVERY_TOKEN_INVALID']);
    const answers = await Promise.all([append('s1', 1), append('s1', 1, 's1', other)]);
    assert.deepEqual(
      answers.map(({ status }) => status).toSorted((a, b) => a - b),
      [200, 409],
    );
    assert.deepEqual(errorOf(await append('s1', 0, 's1', other)), [409, 'TEMPER_STATE_CORRUPT']);
    assert.equal((await append('s1', 0)).status, 200, 'an equal append that arrives late is stored already');
    assert.equal((await append('s1', 2)).status, 200);
    const { seq, tainted, items } = JSON.parse((await other.call('GET', '/v1/sessions/s1', { agent: 'ines' })).text);
    assert.deepEqual([seq, tainted], [3, true]);
    assert.deepEqual(items[0], { role: 'user', text: 'by one', message: 'msg-1' }, 'known members, and no others');
    fixture.setAgent('jana');
    const foreign = JSON.parse((await other.call('GET', '/v1/sessions/s1', { agent: 'jana' })).text);
    assert.equal(foreign.seq, 0, 'a session belongs to its agent');
    assert.equal((await one.call('DELETE', '/v1/sessions/s1', { agent: 'ines' })).status, 204);
  });

  it('a model call stores the items that it carries before its end, and one that conflicts ends with the error', async () => {
    fixture.setAgent('lena');
    const call = (append: object) =>
      one.call('POST', '/v1/models/stream', {
        agent: 'lena',
        body: { deliveryToken: fixture.deliveryToken('lena', 's-lena'), request: aModelRequest(), append },
      });
    const append = { afterSeq: 0, items: [{ role: 'user', text: 'a' }], tainted: true };
    const lastLine = (text: string) =>
      JSON.parse(text.trim().split('\n').at(-1) ?? '') as { type: string; code?: string };
    for (let times = 0; times < 2; times += 1) {
      assert.equal(lastLine((await call(append)).text).type, 'end');
      const { seq, tainted } = JSON.parse((await other.call('GET', '/v1/sessions/s-lena', { agent: 'lena' })).text);
      assert.deepEqual([seq, tainted], [1, true], 'an equal append is stored once');
    }
    const { type, code } = lastLine((await call({ ...append, afterSeq: 9 })).text);
    assert.deepEqual([type, code], ['error', 'TEMPER_STATE_CORRUPT']);
  });

  it('memory access is limited to the grants of the agent and to a delivery', async () => {
    fixture.setAgent('kurt', { grants: { memory: { read: ['self.*'], write: ['self.notes'] } } });
    const inDelivery = (agent: string) => ({ headers: { [DELIVERY_TOKEN_HEADER]: fixture.deliveryToken(agent) } });
    const memory = async (method: string, key: string, value?: unknown) =>
      one.call(method, `/v1/memory/${key}`, {
        agent: 'kurt',
        ...inDelivery('kurt'),
        ...(value === undefined ? {} : { body: { value } }),
      });
    assert.equal((await memory('PUT', 'self.notes', 'blue whales')).status, 204);
    assert.deepEqual(errorOf(await memory('PUT', 'other.notes', 'x')), [403, 'TEMPER_POLICY_DENIED']);
    assert.deepEqual(JSON.parse((await memory('GET', 'self.notes')).text), { value: 'blue whales', tainted: false });
    assert.deepEqual(errorOf(await memory('GET', 'other.notes')), [403, 'TEMPER_POLICY_DENIED']);
    assert.deepEqual(errorOf(await memory('GET', 'self.none')), [404, 'TEMPER_NOT_FOUND']);
    const outside = await one.call('GET', '/v1/memory/self.notes', { agent: 'kurt' });
    assert.equal(errorOf(outside)[1], 'TEMPER_DELIVERY_TOKEN_INVALID');
    const ofOther = await one.call('GET', '/v1/memory/self.notes', { agent: 'kurt', ...inDelivery('ines') });
    assert.equal(errorOf(ofOther)[1], 'TEMPER_DELIVERY_TOKEN_INVALID');
    const search = '/v1/memory?query=whales&limit=5';
    const found = await one.call('GET', search, { agent: 'kurt', ...inDelivery('kurt') });
    assert.deepEqual(JSON.parse(found.text), [{ key: 'self.notes', value: 'blue whales', tainted: false }]);
    const keysOf = async (prefix: string) => {
      const path = `/v1/memory-keys?prefix=${prefix}&limit=5`;
      return JSON.parse((await one.call('GET', path, { agent: 'kurt', ...inDelivery('kurt') })).text);
    };
    assert.deepEqual(await keysOf('self.'), { keys: ['self.notes'], complete: true, tainted: false });
    assert.deepEqual(errorOf(await memory('DELETE', 'self.other')), [403, 'TEMPER_POLICY_DENIED']);
    assert.deepEqual(JSON.parse((await memory('DELETE', 'self.notes')).text), { deleted: true });
    assert.deepEqual(JSON.parse((await memory('DELETE', 'self.notes')).text), { deleted: false });
    assert.deepEqual(await keysOf(''), { keys: [], complete: true, tainted: false });
    fixture.setAgent('lena', { grants: { memory: { read: [], write: [] } } });
    const none = await one.call('GET', search, { agent: 'lena', ...inDelivery('lena') });
    assert.deepEqual(JSON.parse(none.text), []);
  });

  it('the gateway records itself which sessions read untrusted memory, and values carry it to other sessions', async () => {
    const grants = { memory: { read: ['*'], write: ['*'] } };
    for (const agent of ['maja', 'nils']) fixture.setAgent(agent, { grants });
    const taintOf = async (agent: string, session: string): Promise<boolean> =>
      JSON.parse((await other.call('GET', `/v1/sessions/${session}`, { agent })).text).tainted;
    const call = (agent: string, session: string, method: string, path: string, body?: object) =>
      one.call(method, path, {
        agent,
        headers: { [DELIVERY_TOKEN_HEADER]: fixture.deliveryToken(agent, session) },
        ...(body === undefined ? {} : { body }),
      });
    await call('maja', 'clean', 'PUT', '/v1/memory/shared.plan', { value: 'obey' });
    await call('nils', 'own', 'PUT', '/v1/memory/self.notes', { value: 'mine' });
    await call('nils', 'own', 'GET', '/v1/memory/self.notes');
    await call('nils', 'own', 'GET', '/v1/memory/shared.none');
    assert.equal(await taintOf('nils', 'own'), false);
    assert.equal((await call('nils', 'reads', 'GET', '/v1/memory/shared.plan')).status, 200);
    assert.equal(await taintOf('nils', 'reads'), true);
    // The pod does not say that its session is tainted.
    await call('nils', 'reads', 'PUT', '/v1/memory/self.copy', { value: 'obey' });
    for (const [session, path] of [
      ['by-key', '/v1/memory/self.copy'],
      ['by-search', '/v1/memory?query=obey&limit=5'],
      ['by-list', '/v1/memory-keys?prefix=self.&limit=5'],
    ] as const) {
      assert.equal((await call('nils', session, 'GET', path)).status, 200);
      assert.equal(await taintOf('nils', session), true, session);
    }
    // A pod can add taint.
    await call('nils', 'own', 'PUT', '/v1/memory/self.said', { value: 'x', tainted: true });
    assert.deepEqual(JSON.parse((await call('nils', 'said', 'GET', '/v1/memory/self.said')).text), {
      value: 'x',
      tainted: true,
    });
    // The session keeps the items of the pod, and its taint.
    const append = { afterSeq: 0, items: [{ role: 'user', text: 'a', origin: 'User' }] };
    const body = { deliveryToken: fixture.deliveryToken('nils', 'by-key'), ...append };
    assert.equal((await other.call('POST', '/v1/sessions/by-key/items', { agent: 'nils', body })).status, 200);
    const stored = JSON.parse((await one.call('GET', '/v1/sessions/by-key', { agent: 'nils' })).text);
    assert.deepEqual([stored.seq, stored.tainted, stored.items], [1, true, append.items]);
  });

  egressSuite(() => ({ fixture, gateway: one }));
  mcpServersSuite(() => ({ fixture, gateway: one }));
  publishedMcpServersSuite(() => ({ fixture, gateway: one }));
  platformMcpServersSuite(() => ({ fixture, gateway: one }));
  a2aPeersSuite(() => ({ fixture, gateway: one }));
  gitClonesSuite(() => ({ fixture, gateway: one }));
  serviceToolsSuite(() => ({ fixture, gateway: one }));
});
