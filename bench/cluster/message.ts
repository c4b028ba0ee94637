import { rmSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect } from '@nats-io/transport-node';
import { systemClock } from '../../src/lib/clock.ts';
import { startReplay } from '../../src/models/replay/server.ts';
import { RoleProcess } from '../../src/pod/pod.testing.ts';
import { issueTlsIdentity, writeGatewayConfig } from '../../src/gateway-client/certificates.testing.ts';
import {
  type SessionStreamLine,
  type UserMessageReceipt,
  USERS_PATH,
  USER_TOKEN_HEADER,
} from '../../src/gateway-api/user-api.ts';
import { startNats } from '../../test/cluster/nats-server.ts';
import { freePorts } from '../../test/cluster/process.ts';
import { GatewayFixture } from '../../test/support/gateway/gateway-fixture.ts';
import { quantile } from '../baseline/baseline.ts';
import { measureLoad, type LoadReport } from './support/load.ts';
import { requestRow, timings } from './support/request-row.ts';
import { atMost, milliseconds, type Row } from './row.ts';
import { poll } from '../../test/support/poll.ts';

const NAMESPACE = 'team-a';
const AGENT = 'speaker';
const GATEWAY_NAME = 'temper-gateway.temper-system.svc';
const ROUNDS = 8;
const CALLS = 20;
/** A message causes several requests of its pod, and the rate limit is 50 requests per second and pod. */
const PAUSE_MS = 250;
/** The model responds at once. */
const SCRIPT = { rules: [{ answer: { text: 'Done.' } }] };

/** The time from a user's message to the reply, through gateway, NATS, pod and model, each a separate process. */
export async function benchMessage(): Promise<Row[]> {
  await using bench = await MessageBench.open();
  await using bare = await bareRequestReply();
  const ours: number[] = [];
  const theirs: number[] = [];
  const models: number[] = [];
  let endLoad: (() => LoadReport) | undefined;
  // Rounds alternate, so that load on the machine affects all measurements. The first round is a warm-up.
  for (let round = 0; round <= ROUNDS; round += 1) {
    const messages = await bench.conversation(`s-bench-${round}`);
    const requests = await repeated(CALLS, bare.ask);
    const answers = await repeated(CALLS, () => bench.askModel());
    if (round === 0) {
      endLoad = bench.measure();
      continue;
    }
    ours.push(...messages);
    theirs.push(...requests);
    models.push(...answers);
  }
  const p50 = (times: number[]) => quantile(times, 0.5);
  const own = p50(ours) - p50(theirs) - p50(models);
  const note = `p50 from a user's message to the reply ${milliseconds(p50(ours))} (p99 ${milliseconds(quantile(ours, 0.99))}), minus a bare request-reply ${milliseconds(p50(theirs))} and the model's own time ${milliseconds(p50(models))}`;
  const what = 'message to a running agent: own overhead, p50';
  const spent = endLoad === undefined ? {} : { spent: endLoad() };
  const counted = await bench.requests((ROUNDS + 1) * CALLS);
  return [atMost('goal', what, own, 10, milliseconds, { ...spent, note }), ...counted];
}

async function repeated(times: number, once: () => Promise<unknown>): Promise<number[]> {
  const all: number[] = [];
  for (let call = 0; call < times; call += 1) {
    const start = performance.now();
    await once();
    all.push(performance.now() - start);
  }
  return all;
}

/** A request-reply over a nats-server without TLS, users and streams. */
async function bareRequestReply() {
  const server = await startNats();
  const [asking, answering] = await Promise.all([connect({ servers: server.url }), connect({ servers: server.url })]);
  answering.subscribe('echo', { callback: (_error, message) => void message.respond(message.data) });
  await answering.flush();
  return {
    ask: () => asking.request('echo', 'hello', { timeout: 10_000 }),
    async [Symbol.asyncDispose]() {
      await Promise.all([asking.close(), answering.close()]);
      await server[Symbol.asyncDispose]();
    },
  };
}

/** A gateway, an agent's two containers and a model, with a real API server and NATS. */
class MessageBench implements AsyncDisposable {
  readonly #fixture: GatewayFixture;
  readonly #folder: string;
  readonly #roles: Record<string, RoleProcess> = {};
  readonly #open: AsyncDisposable[] = [];
  readonly #connections = new HttpsAgent({ keepAlive: true, rejectUnauthorized: false });
  #url = '';
  #metrics = '';
  #model = '';
  #userToken = '';
  #keys = 0;

  readonly #atExit: () => void;

  private constructor(fixture: GatewayFixture, folder: string) {
    this.#fixture = fixture;
    this.#folder = folder;
    // Stops processes and removes files when the run ends by a signal.
    this.#atExit = () => {
      for (const { child } of Object.values(this.#roles)) child.kill('SIGKILL');
      for (const path of [folder, fixture.folder]) rmSync(path, { recursive: true, force: true });
    };
    process.once('exit', this.#atExit);
  }

  static async open(): Promise<MessageBench> {
    const bench = new MessageBench(
      await GatewayFixture.open([NAMESPACE]),
      await mkdtemp(join(tmpdir(), 'temper-bench-message-')),
    );
    try {
      await bench.#start();
    } catch (error) {
      await bench[Symbol.asyncDispose]();
      throw error;
    }
    return bench;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#connections.destroy();
    await Promise.all(Object.values(this.#roles).map((part) => part.end('SIGKILL')));
    for (const resource of this.#open) await resource[Symbol.asyncDispose]();
    await this.#fixture[Symbol.asyncDispose]();
    await rm(this.#folder, { recursive: true, force: true });
    process.removeListener('exit', this.#atExit);
  }

  measure(): () => LoadReport {
    const roles = Object.entries(this.#roles).map(([name, { child }]): [string, number] => [name, child.pid ?? 0]);
    return measureLoad(Object.fromEntries([...roles, ['load generator and model', process.pid]]));
  }

  /** The requests to the gateway and to NATS per message, from the metrics of the gateway, and the mean duration of each. */
  async requests(messages: number): Promise<Row[]> {
    const page = await (await fetch(`${this.#metrics}/metrics`)).text();
    return [
      requestRow('requests to the gateway per message', timings(page, 'temper_request', 'route'), messages),
      requestRow('requests to NATS per message', timings(page, 'temper_nats_request', 'operation'), messages),
    ];
  }

  /** Sends messages one at a time in a session and returns the milliseconds from each message to its reply. */
  async conversation(session: string): Promise<number[]> {
    const replies = new Replies();
    const stop = new AbortController();
    const path = `${this.#agentPath()}/sessions/${session}/events?follow=true`;
    const following = this.#follow(path, (line) => replies.onLine(line), stop.signal);
    const times: number[] = [];
    for (let message = 0; message < CALLS; message += 1) {
      await sleep(PAUSE_MS);
      const start = performance.now();
      const { id } = await this.#send(session);
      await replies.of(id);
      times.push(performance.now() - start);
    }
    stop.abort();
    await following;
    return times;
  }

  /** Calls the model directly. */
  async askModel(): Promise<void> {
    const body = { model: 'scripted', stream: true, messages: [{ role: 'user', content: 'Go on.' }] };
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(`${this.#model}/v1/chat/completions`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    });
    if (answer.status !== 200) throw new Error(`the model responded ${answer.status}: ${await answer.text()}`);
    await answer.text();
  }

  async #start(): Promise<void> {
    const fixture = this.#fixture;
    const replay = await startReplay({ script: SCRIPT, clock: systemClock });
    this.#open.push(replay);
    this.#model = replay.url;
    await fixture.createPolicy(NAMESPACE, 'bench', { models: { allow: ['replay/*'] } });
    const quotas = { messagesPerMinute: 100_000 };
    const { token } = await fixture.createRunningAgent(NAMESPACE, AGENT, { trustPolicyRef: { name: 'bench' }, quotas });
    this.#userToken = await fixture.createUserToken(NAMESPACE);
    const identity = await issueTlsIdentity(this.#folder, 'gateway', GATEWAY_NAME);
    await this.#startGateway();
    await Promise.all(['endpoints', 'run', 'workspace'].map((name) => mkdir(join(this.#folder, name))));
    const endpoints = join(this.#folder, 'endpoints');
    await writeGatewayConfig(endpoints, { url: this.#url, name: GATEWAY_NAME, authority: identity.authority, token });
    const shared = ['--run', join(this.#folder, 'run'), '--workspace', join(this.#folder, 'workspace')];
    this.#roles['agent'] = new RoleProcess('agent', [
      '--endpoints',
      endpoints,
      '--token',
      join(endpoints, 'token'),
      ...shared,
    ]);
    this.#roles['sandbox'] = new RoleProcess('sandbox', ['--agent-uid', String(process.getuid?.() ?? 0), ...shared]);
  }

  async #startGateway(): Promise<void> {
    const { gateway, health } = await freePorts('gateway', 'health');
    const at = (file: string) => join(this.#folder, file);
    const models = {
      providers: [
        {
          name: 'replay',
          type: 'openai-compatible',
          baseUrl: `${this.#model}/v1`,
          models: [{ name: 'scripted', contextWindow: 128_000, inputPrice: 0, outputPrice: 0 }],
        },
      ],
      aliases: { 'default/default': 'replay/scripted' },
    };
    const config = {
      ...this.#fixture.replicaConfig(),
      listen: { host: '127.0.0.1', port: gateway },
      health: { host: '127.0.0.1', port: health },
      tls: { certificate: at('gateway-tls.crt'), key: at('gateway-tls.key') },
      models,
    };
    await writeFile(at('gateway.json'), JSON.stringify(config));
    const part = new RoleProcess('gateway', ['--config', at('gateway.json')]);
    this.#roles['gateway'] = part;
    this.#url = `https://127.0.0.1:${gateway}`;
    this.#metrics = `http://127.0.0.1:${health}`;
    const isReady = async () =>
      (await fetch(`http://127.0.0.1:${health}/readyz`).catch(() => undefined))?.status === 200;
    await Promise.race([
      poll('the readiness of the gateway', isReady),
      part.exited.then((code) => {
        throw new Error(`the gateway ended with ${code}: ${part.log.slice(-2_000)}`);
      }),
    ]);
  }

  #agentPath(): string {
    return `${USERS_PATH}/${NAMESPACE}/agents/${AGENT}`;
  }

  async #send(session: string): Promise<UserMessageReceipt> {
    this.#keys += 1;
    const headers = { 'content-type': 'application/json', 'idempotency-key': `key-${this.#keys}` };
    const sent = this.#request('POST', `${this.#agentPath()}/messages`, headers);
    sent.end(JSON.stringify({ text: 'Go on.', session }));
    const [status, received] = await new Promise<[number, string]>((resolve, reject) => {
      sent.once('error', reject).once('response', (response) => {
        text(response).then((body) => resolve([response.statusCode ?? 0, body]), reject);
      });
    });
    if (status !== 200) throw new Error(`the gateway responded ${status}: ${received}`);
    return JSON.parse(received) as UserMessageReceipt;
  }

  #follow(path: string, onLine: (line: SessionStreamLine) => void, signal: AbortSignal): Promise<void> {
    const sent = this.#request('GET', path, {});
    signal.addEventListener('abort', () => sent.destroy(), { once: true });
    return new Promise((resolve, reject) => {
      sent.once('close', resolve).once('error', (error) => (signal.aborted ? resolve() : reject(error)));
      sent.once('response', (response) => {
        let rest = '';
        response.setEncoding('utf8').on('error', () => {});
        response.on('data', (chunk: string) => {
          const lines = (rest + chunk).split('\n');
          rest = lines.pop() ?? '';
          for (const line of lines) if (line !== '') onLine(JSON.parse(line) as SessionStreamLine);
        });
      });
      sent.end();
    });
  }

  #request(method: string, path: string, headers: Record<string, string>) {
    const options = { method, agent: this.#connections, headers: { ...headers, [USER_TOKEN_HEADER]: this.#userToken } };
    return httpsRequest(new URL(path, this.#url), options);
  }
}

/** Matches replies to messages in any order. */
class Replies {
  readonly #answered = new Map<string, PromiseWithResolvers<void>>();

  onLine(line: SessionStreamLine): void {
    if (line.kind === 'reply') this.#of(line.message).resolve();
    if (line.kind === 'failed') this.#of(line.message).reject(new Error(`${line.code}: ${line.text}`));
  }

  of(message: string): Promise<void> {
    return this.#of(message).promise;
  }

  #of(message: string): PromiseWithResolvers<void> {
    const known = this.#answered.get(message) ?? Promise.withResolvers<void>();
    this.#answered.set(message, known);
    return known;
  }
}
