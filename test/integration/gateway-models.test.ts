import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { after, before, describe, it } from 'node:test';
import type { ReplayScript } from '../../src/models/replay/script.ts';
import { modelHealthStore } from '../../src/nats/model-health.ts';
import { aRequest, endOf, eventually, linesOf, ModelHouse, refusalOf, type Replica, textOf } from './model-house.ts';
import { metricFamilies } from './metrics-text.ts';

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
      answer: { text: 'one word after the other and so on', chunkBytes: 40, chunkDelayMilliseconds: 500 },
    },
    { answer: { text: 'Quite well, thank you.', usage: USAGE } },
  ],
};

/** Takes one key only, and answers nothing itself. */
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

describe('models for pods', () => {
  let house: ModelHouse;
  let keyed: Server;
  let one: Replica;
  let other: Replica;
  const keys = { accepted: 'the-first-key' };

  before(async () => {
    house = await ModelHouse.open(SCRIPT);
    keyed = await startKeyed(house.replay.url, keys);
    const keyedUrl = `http://127.0.0.1:${(keyed.address() as AddressInfo).port}`;
    const models = {
      providers: [
        {
          name: 'replay',
          type: 'openai',
          baseUrl: `${house.replay.url}/v1`,
          models: [{ name: 'scripted', inputPrice: 2, outputPrice: 10 }],
        },
        { name: 'responses', type: 'openai-responses', baseUrl: `${house.replay.url}/v1` },
        { name: 'failing', type: 'anthropic', baseUrl: house.replay.url },
        { name: 'mounted', type: 'openai', baseUrl: `${keyedUrl}/v1`, keyFile: join(house.folder, 'mount', 'key') },
        { name: 'keyed', type: 'openai', baseUrl: `${keyedUrl}/v1`, keyFile: join(house.folder, 'key') },
      ],
      aliases: { 'default/default': 'replay/scripted' },
    };
    house.policy('standard', {});
    [one, other] = await Promise.all([house.replica(models), house.replica(models)]);
  });
  after(async () => {
    await house?.[Symbol.asyncDispose]();
    keyed?.close();
  });

  const stream = async (agent: string, request = aRequest(), replica = one, signal?: AbortSignal) =>
    replica.call('POST', '/v1/models/stream', {
      agent,
      body: { lease: house.lease(agent), request },
      ...(signal === undefined ? {} : { signal }),
    });

  it('answers line by line, and charges what the provider says to the agent and to its policy', async () => {
    house.policy('counted', {});
    house.agent('anna', {}, 'counted');
    const answer = await stream('anna');
    const lines = linesOf(answer);
    assert.equal(answer.status, 200);
    assert.equal(textOf(lines), 'Quite well, thank you.');
    assert.deepEqual(endOf(lines).usage, USAGE);
    const { inputTokens, outputTokens, costMicros } = await house.usage(one, 'anna');
    assert.deepEqual([inputTokens, outputTokens, costMicros], [100, 20, 400]);
    await stream('anna', aRequest(), other);
    // Each knows its own at once, and what the other spent once that was told.
    for (const replica of [one, other]) {
      await eventually(async () => {
        const { inputTokens, outputTokens } = await house.usage(replica, 'anna');
        return inputTokens === 200 && outputTokens === 40;
      });
    }
  });

  it('sends members it knows and no others, no more output than the agent may have, and nothing to be stored', async () => {
    house.agent('bert', { model: { primary: 'responses/scripted', maxOutputTokens: 50 } });
    const hostile = {
      ...aRequest({ model: 'responses/scripted' }),
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
    assert.equal((await stream('bert', hostile as ReturnType<typeof aRequest>)).status, 200);
    const body = house.replay.requests.at(-1)?.body;
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

  it('refuses a model the agent does not name, one its policy does not allow, and a request that is none', async () => {
    house.policy('narrow', { models: { allow: ['replay/*'] } });
    house.agent('carl', {}, 'narrow');
    house.agent('cleo', { model: { primary: 'keyed/scripted' } }, 'narrow');
    assert.deepEqual(refusalOf(await stream('carl', aRequest({ model: 'keyed/scripted' }))), [
      403,
      'TEMPER_POLICY_DENIED',
    ]);
    assert.deepEqual(refusalOf(await stream('cleo', aRequest({ model: 'keyed/scripted' }))), [
      403,
      'TEMPER_POLICY_DENIED',
    ]);
    assert.deepEqual(refusalOf(await stream('carl', aRequest({ maxOutputTokens: -1 }))), [
      400,
      'TEMPER_REQUEST_INVALID',
    ]);
    const body = { lease: house.lease('cleo'), request: aRequest() };
    const stolen = await one.call('POST', '/v1/models/stream', { agent: 'carl', body });
    assert.deepEqual(refusalOf(stolen), [403, 'TEMPER_LEASE_INVALID']);
  });

  it('refuses what the quota of the agent has no room for, over all replicas, and says until when', async () => {
    house.agent('dora', { quotas: { tokensPerHour: 1_500 } });
    const statuses = [];
    for (const replica of [one, other, one, other]) {
      const answer = await stream('dora', aRequest({ maxOutputTokens: 1_300 }), replica);
      statuses.push(answer.status);
      if (answer.status === 429)
        assert.match(answer.text, /TEMPER_QUOTA_EXCEEDED.*spec\.quotas\.tokensPerHour.*resumes/);
    }
    assert.ok(statuses.includes(429), statuses.join());
    assert.equal(statuses[0], 200);
  });

  it('notices a renewed key, tells that the old one was refused, and never says what it is', async () => {
    house.agent('emil', { model: { primary: 'keyed/scripted' } });
    const request = aRequest({ model: 'keyed/scripted' });
    assert.equal(textOf(linesOf(await stream('emil', request))), 'Quite well, thank you.');
    const health = modelHealthStore(await house.bus.connect('operator'));
    const stateOf = async () => (await health.list()).find(({ provider }) => provider === 'keyed')?.state;
    keys.accepted = 'the-second-key';
    const [failed] = linesOf(await stream('emil', request));
    assert.equal(failed?.type === 'error' && failed.code, 'TEMPER_MODEL_UNAUTHORIZED');
    await eventually(async () => (await stateOf()) === 'Unauthorized');
    await house.renewKey('the-second-key');
    assert.equal(textOf(linesOf(await stream('emil', request))), 'Quite well, thank you.');
    await eventually(async () => (await stateOf()) === 'Available');
    const told = JSON.stringify([failed, house.lines, await health.list()]);
    assert.ok(!told.includes('the-first-key') && !told.includes('the-second-key'));
    const { inputTokens } = await house.usage(one, 'emil');
    assert.equal(inputTokens, 200, 'a refusal costs nothing');
  });

  it('follows a key that Kubernetes replaces in its volume, and lives without the file', async () => {
    house.agent('erna', { model: { primary: 'mounted/scripted' } });
    const request = aRequest({ model: 'mounted/scripted' });
    const answered = async () => linesOf(await stream('erna', request)).at(-1);
    const missing = await answered();
    assert.ok(missing?.type === 'error' && missing.code === 'TEMPER_MODEL_UNAUTHORIZED');
    assert.match(missing.message, /provider "mounted" has no key/);
    const health = modelHealthStore(await house.bus.connect('operator'));
    const state = async () => (await health.list()).find(({ provider }) => provider === 'mounted')?.state;
    await eventually(async () => (await state()) === 'Unauthorized');
    for (const key of ['key-of-monday', 'key-of-tuesday']) {
      keys.accepted = key;
      await house.mountKey(key);
      assert.equal((await answered())?.type, 'end', `with ${key}`);
    }
    await eventually(async () => (await state()) === 'Available');
    await house.mountKey(undefined);
    assert.equal((await answered())?.type, 'error');
    assert.equal((await stream('erna', aRequest({ model: 'replay/scripted' }))).status, 403, 'it still decides');
  });

  it('lets a fallback answer for a provider that cannot, and says which', async () => {
    house.agent('finn', { model: { primary: 'failing/busy', fallbacks: ['failing/broken', 'replay/scripted'] } });
    const request = aRequest({ model: 'failing/busy' });
    const lines = linesOf(await stream('finn', request));
    assert.equal(textOf(lines), 'Quite well, thank you.');
    for (let call = 0; call < 2; call += 1) await stream('finn', request);
    const health = modelHealthStore(await house.bus.connect('operator'));
    await eventually(async () => {
      const failing = (await health.list()).find(({ provider }) => provider === 'failing');
      return failing?.state === 'Unavailable' && failing.fallback === 'replay/scripted';
    });
  });

  it('ends with an error line when nothing can answer, and charges nothing for it', async () => {
    house.agent('gert', { model: { primary: 'failing/busy' } });
    const lines = linesOf(await stream('gert', aRequest({ model: 'failing/busy' })));
    const last = lines.at(-1);
    assert.ok(last?.type === 'error' && ['TEMPER_MODEL_RATE_LIMITED', 'TEMPER_MODEL_UNAVAILABLE'].includes(last.code));
    assert.equal((await house.usage(one, 'gert')).outputTokens, 0);
  });

  it('withdraws what nobody waits for, and charges what was reserved for it', async () => {
    house.agent('hugo', { model: { primary: 'replay/slow' } });
    const leaving = new AbortController();
    const before = house.replay.requests.length;
    const answer = stream('hugo', aRequest({ model: 'replay/slow', maxOutputTokens: 700 }), one, leaving.signal);
    await eventually(async () => house.replay.requests.length > before);
    leaving.abort();
    await assert.rejects(answer);
    await eventually(async () => (await house.usage(one, 'hugo')).outputTokens === 700);
  });

  it('counts calls by provider, model and outcome, and denials by whose quota it was; no other name is a label', async () => {
    house.agent('ines', { model: { primary: 'keyed/made-up-by-a-team' } });
    await stream('ines', aRequest({ model: 'keyed/made-up-by-a-team' }));
    const pages = await Promise.all([one, other].map((replica) => replica.metrics()));
    const samples = pages.map((page) => metricFamilies(page).samples);
    const count = (labels: string): number =>
      samples.reduce((sum, found) => sum + (found.get(`temper_model_requests_total{${labels}}`) ?? 0), 0);
    assert.ok(count('provider="replay",model="scripted",outcome="ok"') > 0);
    assert.ok(count('provider="keyed",model="other",outcome="TEMPER_MODEL_UNAUTHORIZED"') > 0);
    assert.ok(count('provider="replay",model="other",outcome="cancelled"') > 0);
    const denied = 'temper_quota_denials_total{scope="agent",quota="tokensPerHour"}';
    assert.ok(samples.some((found) => (found.get(denied) ?? 0) > 0));
    for (const page of pages) assert.doesNotMatch(page, /made-up|ines|dora|uid-|slow/);
  });

  it('keeps histories for who holds the lease of the session, and lets one of two writers win', async () => {
    house.agent('ines');
    const append = async (session: string, afterSeq: number, leased = 's1', replica = one) =>
      replica.call('POST', `/v1/sessions/${session}/items`, {
        agent: 'ines',
        body: {
          lease: house.lease('ines', leased),
          afterSeq,
          items: [{ role: 'user', text: replica === one ? 'by one' : 'by the other', message: 'msg-1', more: 'x' }],
          tainted: afterSeq === 1,
        },
      });
    assert.equal((await append('s1', 0)).status, 200);
    assert.deepEqual(refusalOf(await append('s2', 0)), [403, 'TEMPER_LEASE_INVALID']);
    const answers = await Promise.all([append('s1', 1), append('s1', 1, 's1', other)]);
    assert.deepEqual(
      answers.map(({ status }) => status).toSorted((a, b) => a - b),
      [200, 409],
    );
    assert.deepEqual(refusalOf(await append('s1', 0)), [409, 'TEMPER_STATE_CORRUPT']);
    assert.equal((await append('s1', 2)).status, 200);
    const { seq, tainted, items } = JSON.parse((await other.call('GET', '/v1/sessions/s1', { agent: 'ines' })).text);
    assert.deepEqual([seq, tainted], [3, true]);
    assert.deepEqual(items[0], { role: 'user', text: 'by one', message: 'msg-1' }, 'known members, and no others');
    house.agent('jana');
    const foreign = JSON.parse((await other.call('GET', '/v1/sessions/s1', { agent: 'jana' })).text);
    assert.equal(foreign.seq, 0, 'a session is one of its agent');
    assert.equal((await one.call('DELETE', '/v1/sessions/s1', { agent: 'ines' })).status, 204);
  });

  it('keeps memory within the grants of the agent', async () => {
    house.agent('kurt', { grants: { memory: { read: ['self.*'], write: ['self.notes'] } } });
    const memory = async (method: string, key: string, value?: unknown) =>
      one.call(method, `/v1/memory/${key}`, {
        agent: 'kurt',
        ...(value === undefined ? {} : { body: { value } }),
      });
    assert.equal((await memory('PUT', 'self.notes', 'blue whales')).status, 204);
    assert.deepEqual(refusalOf(await memory('PUT', 'other.notes', 'x')), [403, 'TEMPER_POLICY_DENIED']);
    assert.deepEqual(JSON.parse((await memory('GET', 'self.notes')).text), { value: 'blue whales' });
    assert.deepEqual(refusalOf(await memory('GET', 'other.notes')), [403, 'TEMPER_POLICY_DENIED']);
    assert.deepEqual(refusalOf(await memory('GET', 'self.none')), [404, 'TEMPER_NOT_FOUND']);
    const found = await one.call('GET', '/v1/memory?query=whales&limit=5', { agent: 'kurt' });
    assert.deepEqual(JSON.parse(found.text), [{ key: 'self.notes', value: 'blue whales' }]);
    house.agent('lena', { grants: { memory: { read: [], write: [] } } });
    const none = await one.call('GET', '/v1/memory?query=whales&limit=5', { agent: 'lena' });
    assert.deepEqual(JSON.parse(none.text), []);
  });
});
