import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../test/support/stubs.ts';
import { systemClock } from '../lib/clock.ts';
import type { ErrorCode } from '../lib/error-codes.ts';
import { isTemperError, TemperError } from '../lib/errors.ts';
import { ulids } from '../lib/ids.ts';
import type { CallOptions } from '../lib/call-options.ts';
import type { Model, ModelEvent } from '../models/port.ts';
import { anArtifact, aSharedTool, aUse } from '../tempering/tempering.testing.ts';
import { type TlsIdentity, issueTlsIdentity, writeGatewayConfig } from './certificates.testing.ts';
import { RemoteBus } from './bus.ts';
import { ReportSender } from './report-sender.ts';
import { GatewayConfigFiles } from './endpoints/gateway-config-files.ts';
import { GatewayClient } from './gateway-client.ts';
import { GatewayDouble } from './gateway.testing.ts';
import { aMessage } from './inbox.testing.ts';
import { readLines } from './line-reader.ts';
import { remoteModel } from './model.ts';
import { remoteMemory } from './stores.ts';

const NAME = 'temper-gateway.temper-system.svc';
const END: ModelEvent = {
  type: 'end',
  stopReason: 'stop',
  usage: { inputTokens: 1, outputTokens: 1, cachedInputTokens: 0 },
  model: 'm',
};

function anOp(milliseconds = 10_000): CallOptions {
  return {
    signal: NEVER_ABORTED,
    deadline: systemClock.monotonic() + milliseconds,
    key: ulids.next('op'),
  };
}

const hasCode = (code: ErrorCode) => (error: unknown) => isTemperError(error, code);

const SENDER = { clock: systemClock, ids: ulids, deliveryToken: () => undefined };

describe('the client of the gateway', { timeout: 600_000 }, () => {
  let folder: string;
  let first: TlsIdentity;
  let second: TlsIdentity;
  let gateway: GatewayDouble;
  let client: GatewayClient;
  let modelOutput: ModelEvent[] | Error;
  const model: Model = {
    async *stream() {
      if (modelOutput instanceof Error) throw modelOutput;
      yield* modelOutput;
    },
    embed: async (texts) => texts.map(() => new Float32Array([1, 2])),
  };
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'temper-remote-'));
    first = await issueTlsIdentity(folder, 'first', NAME);
    second = await issueTlsIdentity(folder, 'second', NAME);
  });
  after(() => rm(folder, { recursive: true, force: true }));
  beforeEach(async () => {
    modelOutput = [END];
    gateway = await GatewayDouble.start(first, model);
    await writeGatewayConfig(folder, { url: gateway.url, name: NAME, authority: first.authority, token: 'token-1' });
    const configFiles = new GatewayConfigFiles({ folder, tokenFile: join(folder, 'token'), clock: systemClock });
    client = new GatewayClient({ configFiles, clock: systemClock, random: () => 0 });
  });
  afterEach(async () => {
    await client[Symbol.asyncDispose]();
    await gateway[Symbol.asyncDispose]();
  });

  const post = (op = anOp()) => client.call({ method: 'POST', path: '/v1/reports', body: {}, op });

  it('the client sends no token to a server with another CA or another name', async () => {
    await writeGatewayConfig(folder, { authority: second.authority });
    await assert.rejects(post(anOp(600)), hasCode('TEMPER_GATEWAY_UNTRUSTED'));
    await writeGatewayConfig(folder, { authority: first.authority, name: 'other-gateway.svc' });
    await assert.rejects(post(anOp(600)), hasCode('TEMPER_GATEWAY_UNTRUSTED'));
    assert.deepEqual(gateway.requests, []);
  });

  it('the client uses a new CA and a new token without a restart', async () => {
    await post();
    gateway.present(second);
    const waiting = post();
    await writeGatewayConfig(folder, { authority: second.authority });
    await waiting;
    gateway.tokens.add('token-2');
    gateway.tokens.delete('token-1');
    await writeGatewayConfig(folder, { token: 'token-2' });
    await post();
    assert.equal(gateway.requests.at(-1)?.token, 'token-2');
  });

  it('the client retries failed requests with the same idempotency key', async () => {
    const faults = ['reset', { status: 503 }, { status: 429, headers: { 'retry-after': '0' } }] as const;
    let faulted = 0;
    gateway.fault = () => {
      faulted += 1;
      return faults[faulted - 1];
    };
    await post();
    assert.equal(gateway.requests.length, 4);
    assert.equal(new Set(gateway.requests.map(({ key }) => key)).size, 1);
  });

  it('the client sends a key that no header may contain as its digest', async () => {
    for (const key of ['call 1', 'ü', 'x'.repeat(129)]) await post({ ...anOp(), key });
    await post({ ...anOp(), key: 'call-1' });
    const keys = gateway.requests.map(({ key }) => key);
    assert.equal(new Set(keys).size, 4);
    assert.ok(keys.slice(0, 3).every((key) => /^sha256:[0-9a-f]{64}$/.test(key)));
    assert.equal(keys[3], 'call-1');
  });

  it('the client retries an unavailable gateway no longer than the deadline of the operation', async () => {
    gateway.fault = () => ({ status: 503 });
    await assert.rejects(post(anOp(500)), hasCode('TEMPER_GATEWAY_UNAVAILABLE'));
    await gateway[Symbol.asyncDispose]();
    await assert.rejects(post(anOp(500)), hasCode('TEMPER_GATEWAY_UNAVAILABLE'));
    gateway = await GatewayDouble.start(first, model);
  });

  it('the client does not retry permanent errors', async () => {
    for (const [status, code] of [
      [403, 'TEMPER_GATEWAY_FORBIDDEN'],
      [429, 'TEMPER_GATEWAY_UNAVAILABLE'],
      [400, 'TEMPER_GATEWAY_BAD_RESPONSE'],
    ] as const) {
      gateway.requests.length = 0;
      gateway.fault = () => ({ status });
      await assert.rejects(
        post(),
        (error) => isTemperError(error, code) && error.details['status'] === status,
        String(status),
      );
      assert.equal(gateway.requests.length, 1);
    }
    gateway.fault = () => undefined;
    gateway.tokens.clear();
    await assert.rejects(post(), hasCode('TEMPER_GATEWAY_FORBIDDEN'));
  });

  it('the client reports what is wrong with its gateway configuration files', async () => {
    await writeGatewayConfig(folder, { url: 'http://10.0.0.1:80' });
    await assert.rejects(
      post(anOp(300)),
      (error) => isTemperError(error) && /https:\/\/address:port/.test(error.message),
    );
  });

  it('the client streams a model’s response with the delivery token, and reports how it failed', async () => {
    const message = aMessage();
    void gateway.inbox.add(message);
    await gateway.inbox.next(1, NEVER_ABORTED);
    const stored: unknown[] = [];
    const append = { afterSeq: 0, items: [{ role: 'user' as const, text: 'a' }] };
    const remote = remoteModel({
      client,
      deliveryToken: () => 'delivery-1',
      append: async () => (stored.length === 0 ? append : undefined),
      onStored: (confirmed) => stored.push(confirmed),
      onAnswerSignature: assert.fail,
    });
    const request = { model: 'a/b', system: '', messages: [], tools: [], maxOutputTokens: 1 };
    const events = async () => {
      const all: ModelEvent[] = [];
      for await (const event of remote.stream(request, anOp())) all.push(event);
      return all;
    };
    modelOutput = [
      { type: 'text', text: 'a\nb' },
      { type: 'tool-call', call: { id: '1', name: 'x', arguments: '{' } },
      END,
    ];
    assert.deepEqual(await events(), modelOutput);
    assert.deepEqual(stored, [append], 'the end of the response confirms the items');
    assert.equal((await gateway.sessions.load(message.session)).seq, 1);
    const connections = gateway.connections;
    for (let times = 0; times < 4; times += 1) {
      // Stops at the end event, as the agent loop does.
      for await (const event of remote.stream(request, anOp())) if (event.type === 'end') break;
    }
    assert.ok(gateway.connections <= connections + 1, 'the pool may open a second connection; it discards none');
    modelOutput = [{ type: 'text', text: 'a' }];
    await assert.rejects(events(), hasCode('TEMPER_GATEWAY_UNAVAILABLE'), 'a response without an end event');
    modelOutput = new Error('boom');
    await assert.rejects(events(), hasCode('TEMPER_INTERNAL'));
    for (const retry of [7_000, 'backoff', 'never'] as const) {
      modelOutput = new TemperError('TEMPER_MODEL_RATE_LIMITED', 'busy', { retry });
      await assert.rejects(
        events(),
        (error) => isTemperError(error, 'TEMPER_MODEL_RATE_LIMITED') && error.retry === retry,
      );
    }
    const repeated = { model: 'a/b', attempt: 2, code: 'TEMPER_MODEL_OVERLOADED', milliseconds: 300 } as const;
    modelOutput = [{ type: 'retry', ...repeated } as unknown as ModelEvent, END];
    const seen: unknown[] = [];
    const read: ModelEvent[] = [];
    const op = { ...anOp(), onRepeat: (call: unknown) => void seen.push(call) };
    for await (const event of remote.stream(request, op)) read.push(event);
    assert.deepEqual([read, seen], [[END], [repeated]], 'a repetition is no event of the answer');
    modelOutput = [{ type: 'text', text: 7 } as unknown as ModelEvent];
    await assert.rejects(events(), hasCode('TEMPER_GATEWAY_BAD_RESPONSE'));
  });

  it('the end of a message carries its last reports, which stay buffered until the gateway has them', async () => {
    const reports = new ReportSender({ ...SENDER, client, onError: assert.fail });
    const stamp = { time: '', agent: 'a', session: 's', rootMessage: 'm' };
    const before = gateway.events.length;
    for (let index = 0; index < 250; index += 1)
      reports.event({ type: 'message', text: String(index), delta: true, ...stamp });
    const first = await reports.last(anOp());
    assert.equal(gateway.events.length - before, 200, 'earlier reports are sent');
    assert.equal(first?.batch.events?.length, 50);
    const second = await reports.last(anOp());
    assert.deepEqual([second?.key, second?.batch], [first?.key, first?.batch], 'the end was lost');
    second?.accepted();
    first?.accepted();
    assert.equal(await reports.last(anOp()), undefined);
    await reports.flush(anOp());
    assert.equal(gateway.events.length - before, 200);
    gateway.events.length = before;
    await reports[Symbol.asyncDispose]();
  });

  it('reports stay buffered in order until the gateway accepts them, and reports that are too large are dropped', async () => {
    const problems: string[] = [];
    const onTrouble = (problem: string) => void problems.push(problem);
    const reports = new ReportSender({ ...SENDER, client, onError: onTrouble });
    const stamp = { time: '', agent: 'a', session: 's', rootMessage: 'm' };
    gateway.fault = () => ({ status: 401 });
    reports.event({ type: 'message', text: 'first', delta: true, ...stamp });
    await assert.rejects(reports.flush(anOp()));
    gateway.fault = () => undefined;
    reports.event({ type: 'message', text: 'x'.repeat(60_000), delta: true, ...stamp });
    reports.event({ type: 'tool-call', id: '1', tool: 't', input: 'y'.repeat(40_000), ...stamp });
    await reports.audit.append({ action: 'a', actor: 'b', evidence: 'observed', subject: 'c', facts: {} });
    await reports.flush(anOp());
    assert.deepEqual(
      gateway.events.map((event) => (event.type === 'message' ? event.text : event.type)),
      ['first', 'tool-call'],
    );
    assert.deepEqual(
      gateway.audit.map(({ evidence }) => evidence),
      ['reported'],
    );
    assert.equal(problems.length, 1);
    await reports[Symbol.asyncDispose]();
  });

  it('the calls of forged tools are sent with the other reports of their message, the latest counts alone', async () => {
    const reports = new ReportSender({ ...SENDER, client, onError: assert.fail });
    const stamp = { time: '', agent: 'a', session: 's', rootMessage: 'm' };
    const { digest } = aSharedTool('double');
    reports.event({ type: 'message', text: 'x', delta: true, ...stamp });
    reports.calls([{ digest, calls: 1, failures: 0 }]);
    reports.calls([{ digest, calls: 2, failures: 1 }]);
    const last = await reports.last(anOp());
    assert.deepEqual([last?.batch.events?.length, last?.batch.toolCalls], [1, [{ digest, calls: 2, failures: 1 }]]);
    last?.accepted();
    reports.calls([{ digest, calls: 3, failures: 1 }]);
    assert.deepEqual((await reports.last(anOp()))?.batch.toolCalls?.[0]?.calls, 3, 'they need no other report');
    await reports[Symbol.asyncDispose]();
  });

  it('a use whose recording does not fit into a report is sent without it, and counts', async () => {
    const reports = new ReportSender({
      client,
      clock: systemClock,
      ids: ulids,
      onError: assert.fail,
      deliveryToken: () => undefined,
    });
    const call = {
      name: 'fetch',
      input: {},
      answer: { ok: true, value: 'x'.repeat(262_144) },
      evidence: 'reported',
    } as const;
    const artifact = anArtifact();
    reports.use(aUse(artifact, { n: 1 }, { recording: { ok: true, recording: { calls: [call] } } }));
    const small = { ok: true as const, recording: { calls: [{ ...call, answer: { ok: true as const, value: 1 } }] } };
    reports.use(aUse(artifact, { n: 2 }, { recording: small }));
    const last = await reports.last(anOp());
    assert.deepEqual(
      last?.batch.uses?.map(({ recording, evidence }) => [recording, evidence]),
      [
        [{ ok: false, reason: 'RecordingTooLarge' }, 'reported'],
        [small, 'reported'],
      ],
    );
    last?.accepted();
    await reports[Symbol.asyncDispose]();
  });

  it('permanently refused reports are dropped with a reason, and the next ones are sent', async () => {
    const problems: string[] = [];
    const reports = new ReportSender({
      ...SENDER,
      client,
      onError: (problem) => void problems.push(problem),
    });
    const stamp = { time: '', agent: 'a', session: 's', rootMessage: 'm' };
    for (const status of [400, 413, 422]) {
      gateway.fault = () => ({ status });
      reports.event({ type: 'message', text: `refused ${status}`, delta: true, ...stamp });
      await reports.flush(anOp());
    }
    gateway.fault = () => ({ status: 403 });
    reports.event({ type: 'message', text: 'kept', delta: true, ...stamp });
    await assert.rejects(reports.flush(anOp()), hasCode('TEMPER_GATEWAY_FORBIDDEN'));
    gateway.fault = () => undefined;
    await reports.flush(anOp());
    assert.deepEqual(
      gateway.events.map((event) => event.type === 'message' && event.text),
      ['kept'],
    );
    assert.equal(problems.length, 3, problems.join('\n'));
    assert.match(problems[0] ?? '', /1 reports were refused and dropped: .*400/);
    await reports[Symbol.asyncDispose]();
  });

  it('the client honours Retry-After for each status, up to its limit', async () => {
    for (const status of [403, 429, 503]) {
      let refused = 0;
      const start = performance.now();
      gateway.fault = () => ((refused += 1) === 1 ? { status, headers: { 'retry-after': '1' } } : undefined);
      await post();
      assert.equal(refused, 2);
      assert.ok(performance.now() - start >= 900, `${status} after ${performance.now() - start} ms`);
    }
    gateway.fault = () => ({ status: 429, headers: { 'retry-after': '3600' } });
    await assert.rejects(
      post(),
      (error) => isTemperError(error) && error.retry === 3_600_000,
      'the client does not wait an hour',
    );
  });

  it('a restarted process receives its in-flight message again at once; a running one does not', async () => {
    const newBus = () => new RemoteBus({ client, clock: systemClock, ids: ulids, deliveryToken: () => '' });
    const message = aMessage();
    const ended = gateway.inbox.add(message);
    const previous = newBus();
    assert.equal((await previous.next(anOp())).message.id, message.id);
    await assert.rejects(previous.next(anOp(1_100)), hasCode('TEMPER_TIMEOUT'));
    const redelivered = await newBus().next(anOp());
    assert.equal(redelivered.message.id, message.id);
    await redelivered.ackWithReply('done', 'complete', anOp());
    assert.equal((await ended).action, 'ack');
  });

  it('the remote memory stores, reads and finds values', async () => {
    const signal = NEVER_ABORTED;
    const memory = remoteMemory({
      client,
      clock: systemClock,
      ids: ulids,
      deliveryToken: () => 'none',
      signal: () => signal,
    });
    assert.equal(await memory.get('self.a/b'), undefined);
    await memory.set('self.a/b', { n: 1 });
    assert.deepEqual(await memory.get('self.a/b'), { value: { n: 1 }, tainted: false });
    await memory.set('self.a/b', { n: 1 }, { tainted: true });
    assert.deepEqual(await memory.get('self.a/b'), { value: { n: 1 }, tainted: true });
    assert.deepEqual(await memory.search('a/b', 5, () => true), [{ key: 'self.a/b', value: { n: 1 }, tainted: true }]);
  });

  it('the line reader joins lines across chunks and refuses lines beyond the limits', async () => {
    async function* chunks(...texts: string[]) {
      for (const text of texts) yield Buffer.from(text);
    }
    const lines: string[] = [];
    for await (const line of readLines(chunks('a', 'b\n\nc', '\n', 'd'), { lineBytes: 9, totalBytes: 99 }))
      lines.push(line);
    assert.deepEqual(lines, ['ab', 'c', 'd']);
    for (const limits of [
      { lineBytes: 2, totalBytes: 99 },
      { lineBytes: 99, totalBytes: 3 },
    ]) {
      await assert.rejects(async () => {
        for await (const line of readLines(chunks('abc', 'd\n'), limits)) lines.push(line);
      }, hasCode('TEMPER_GATEWAY_BAD_RESPONSE'));
    }
  });
});
