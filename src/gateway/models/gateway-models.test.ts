import assert from 'node:assert/strict';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, it } from 'node:test';
import { parsePrometheusText } from '../../../test/support/prometheus-text.ts';
import type { Ledger } from '../../ledger/port.ts';
import { systemClock } from '../../lib/clock.ts';
import type { TemperError } from '../../lib/errors.ts';
import { calledBy, compose } from '../../models/pipeline.ts';
import { anOp, aRequest, eventsOf } from '../../models/raw-http-server.testing.ts';
import { createRegistry, registerMetrics } from '../../telemetry/prometheus.ts';
import { GATEWAY_METRICS } from '../../telemetry/temper-metrics.ts';
import { openGatewayModels } from './gateway-models.ts';

const ANSWER = {
  model: 'm',
  choices: [{ index: 0, message: { content: 'well' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 5, completion_tokens: 1 },
};

type Failure = (response: ServerResponse, request: string) => void;

const failing =
  (status: number, error: (request: string) => object = () => ({ message: 'no' })): Failure =>
  (response, request) => {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ error: error(request) }));
  };

/** What the provider answers to requests that contain the word "evil". */
const FAILURES: Record<string, Failure> = {
  'a status 400 that repeats the words of the request': failing(400, (request) => ({ message: request })),
  'a status 429 with the code of a spent account, for one agent': failing(429, () => ({
    code: 'insufficient_quota',
    message: 'no',
  })),
  'a status 402 for the size of one request': failing(402),
  'a status 403 of a filter': failing(403),
  'a storm of status 429': failing(429),
  'a status 500 of one request': failing(500),
  'a request that times out': () => undefined,
};

const GRANTS: Ledger = {
  reserve: async () => ({ granted: true, id: 'r' }),
  commit: async () => undefined,
  usage: () => Promise.reject(new Error('not used')),
};

/** A gateway with one provider, which answers all requests but those that contain "evil". */
async function aGateway(fail: Failure) {
  const open = new Set<string>(['evil']);
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      if ([...open].some((word) => body.includes(word))) return fail(response, body);
      response.writeHead(200, { 'content-type': 'application/json' });
      return response.end(JSON.stringify(ANSWER));
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  const registry = createRegistry();
  const { set, health } = openGatewayModels(
    { providers: [{ name: 'p', type: 'openai', baseUrl, models: [{ name: 'm' }] }], aliases: {} },
    {
      clock: systemClock,
      ids: { next: (prefix) => prefix },
      random: () => 0,
      metrics: registerMetrics(registry, GATEWAY_METRICS),
      retry: { maxAttempts: 1 },
    },
  );
  const call = (agent: string, words: string, milliseconds = 30_000) => {
    const model = compose(set.pipeline, [calledBy({ id: agent, ledger: GRANTS })]);
    const request = aRequest({ messages: [{ role: 'user', text: words }] });
    return eventsOf(model.stream({ ...request, model: set.resolve('p/m') }, anOp(milliseconds))).then(
      () => 'answered',
      (error: TemperError) => error.code,
    );
  };
  return {
    call,
    state: () => health.list()[0]?.state,
    samples: async () => parsePrometheusText(await registry.metrics()).samples,
    failFor: (word: string) => open.add(word),
    recover: () => open.clear(),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
}

const circuits = (samples: Map<string, number>) =>
  ['provider', 'agent'].map((scope) => samples.get(`temper_model_circuits_open{provider="p",scope="${scope}"}`));

describe('the models of a gateway that several agents share', () => {
  for (const [title, fail] of Object.entries(FAILURES)) {
    it(`${title} stops no other agent and does not change the state of the provider`, async () => {
      await using gateway = await aGateway(fail);
      assert.equal(await gateway.call('victim', 'hello'), 'answered');
      for (let round = 0; round < 3; round += 1) {
        // As many in a row as open a circuit.
        for (let call = 0; call < 4; call += 1) {
          assert.notEqual(await gateway.call('attacker', 'evil', 100), 'answered');
        }
        assert.equal(gateway.state(), 'Available');
        assert.equal(await gateway.call('victim', 'hello'), 'answered');
      }
      assert.equal(circuits(await gateway.samples())[0], 0);
    });
  }

  it('an outage opens the circuit of the provider, makes it unavailable, and ends with the first answer', async () => {
    await using gateway = await aGateway(failing(503));
    for (const agent of ['a', 'b']) assert.equal(await gateway.call(agent, 'hello'), 'answered');
    gateway.failFor('hello');
    for (let call = 0; call < 3; call += 1) await gateway.call('a', 'hello');
    assert.deepEqual([gateway.state(), circuits(await gateway.samples())], ['Available', [0, 1]]);
    for (let call = 0; call < 3; call += 1) await gateway.call('b', 'hello');
    assert.deepEqual([gateway.state(), circuits(await gateway.samples())], ['Unavailable', [1, 2]]);
    gateway.recover();
    assert.equal(await gateway.call('b', 'hello'), 'TEMPER_MODEL_UNAVAILABLE');
    assert.equal(await gateway.call('c', 'hello'), 'answered');
    assert.deepEqual([gateway.state(), circuits(await gateway.samples())], ['Available', [0, 0]]);
    assert.equal(await gateway.call('b', 'hello'), 'answered');
  });

  it('an agent that is the only active one shows the failure of its provider', async () => {
    await using gateway = await aGateway(failing(503));
    for (let call = 0; call < 3; call += 1) await gateway.call('only', 'evil');
    assert.deepEqual([gateway.state(), circuits(await gateway.samples())], ['Unavailable', [1, 1]]);
  });

  it('the duration and the time to the first event of a call are measured, by provider and configured model', async () => {
    await using gateway = await aGateway(failing(503));
    await gateway.call('a', 'hello');
    await gateway.call('a', 'evil');
    const samples = await gateway.samples();
    const labels = '{provider="p",model="m"}';
    assert.equal(samples.get(`temper_model_first_event_seconds_count${labels}`), 1);
    assert.equal(samples.get(`temper_model_duration_seconds_count${labels}`), 2);
    assert.equal(samples.get('temper_model_duration_seconds_bucket{le="600",provider="p",model="m"}'), 2);
  });
});
