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
import { issueIdentity, writeDoors } from '../../src/remote/certificates.testing.ts';
import { type FollowLine, type PersonReceipt, PEOPLE_PATH, TOKEN_HEADER } from '../../src/remote/people.ts';
import { startNats } from '../../test/cluster/nats-server.ts';
import { freePorts } from '../../test/cluster/process.ts';
import { eventually, GatewayHouse } from '../../test/integration/gateway-house.ts';
import { quantile } from '../beside-bare.ts';
import { measureLoad, type Spent } from './load.ts';
import { atMost, milliseconds, type Row } from './row.ts';

const NAMESPACE = 'team-a';
const AGENT = 'speaker';
const GATEWAY_NAME = 'temper-gateway.temper-system.svc';
const ROUNDS = 8;
const CALLS = 20;
/** A message is nine requests of its pod, and the gateway grants a pod fifty a second. */
const BETWEEN_MS = 250;
/** An answer at once. */
const SCRIPT = { rules: [{ answer: { text: 'Done.' } }] };

/** From a person's message to the answer at the person's end, through gateway, bus, pod and model, each a process of its own. */
export async function benchMessage(): Promise<Row[]> {
  await using scene = await Scene.open();
  await using bare = await bareRequestReply();
  const ours: number[] = [];
  const theirs: number[] = [];
  const models: number[] = [];
  let endLoad: (() => Spent) | undefined;
  // Rounds take turns, so that a busy machine disturbs all alike; the first one warms up.
  for (let round = 0; round <= ROUNDS; round += 1) {
    const messages = await scene.conversation(`s-bench-${round}`);
    const requests = await repeated(CALLS, bare.ask);
    const answers = await repeated(CALLS, () => scene.askModel());
    if (round === 0) {
      endLoad = scene.measure();
      continue;
    }
    ours.push(...messages);
    theirs.push(...requests);
    models.push(...answers);
  }
  const p50 = (times: number[]) => quantile(times, 0.5);
  const own = p50(ours) - p50(theirs) - p50(models);
  const note = `p50 from a person's message to the answer ${milliseconds(p50(ours))} (p99 ${milliseconds(quantile(ours, 0.99))}), less a bare request-reply ${milliseconds(p50(theirs))} and the model's own time ${milliseconds(p50(models))}`;
  const what = 'message to a running agent: own overhead, p50';
  const spent = endLoad === undefined ? {} : { spent: endLoad() };
  return [atMost('goal', what, own, 10, milliseconds, { ...spent, note }), scene.requests((ROUNDS + 1) * CALLS)];
}

async function repeated(times: number, once: () => Promise<unknown>): Promise<number[]> {
  const all: number[] = [];
  for (let call = 0; call < times; call += 1) {
    const begun = performance.now();
    await once();
    all.push(performance.now() - begun);
  }
  return all;
}

/** Two connections to a server without TLS, users and streams. */
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

/** A gateway, an agent's two containers and a model over a real API server and bus. */
class Scene implements AsyncDisposable {
  readonly #house: GatewayHouse;
  readonly #folder: string;
  readonly #parts: Record<string, RoleProcess> = {};
  readonly #open: AsyncDisposable[] = [];
  readonly #connections = new HttpsAgent({ keepAlive: true, rejectUnauthorized: false });
  #url = '';
  #model = '';
  #person = '';
  #keys = 0;

  readonly #atExit: () => void;

  private constructor(house: GatewayHouse, folder: string) {
    this.#house = house;
    this.#folder = folder;
    // Whoever ends the run by a signal leaves nothing running and nothing behind.
    this.#atExit = () => {
      for (const { child } of Object.values(this.#parts)) child.kill('SIGKILL');
      for (const path of [folder, house.folder]) rmSync(path, { recursive: true, force: true });
    };
    process.once('exit', this.#atExit);
  }

  static async open(): Promise<Scene> {
    const scene = new Scene(
      await GatewayHouse.open([NAMESPACE]),
      await mkdtemp(join(tmpdir(), 'temper-bench-message-')),
    );
    try {
      await scene.#start();
    } catch (error) {
      await scene[Symbol.asyncDispose]();
      throw error;
    }
    return scene;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#connections.destroy();
    await Promise.all(Object.values(this.#parts).map((part) => part.end('SIGKILL')));
    for (const one of this.#open) await one[Symbol.asyncDispose]();
    await this.#house[Symbol.asyncDispose]();
    await rm(this.#folder, { recursive: true, force: true });
    process.removeListener('exit', this.#atExit);
  }

  measure(): () => Spent {
    const roles = Object.entries(this.#parts).map(([name, { child }]): [string, number] => [name, child.pid ?? 0]);
    return measureLoad(Object.fromEntries([...roles, ['load generator and model', process.pid]]));
  }

  /** What was asked of the gateway for a message, by its own log: how often, and how long each took. */
  requests(messages: number): Row {
    const routes = new Map<string, number[]>();
    for (const line of this.#parts['gateway']?.log.split('\n') ?? []) {
      if (!line.startsWith('{')) continue;
      const { route, milliseconds: took } = JSON.parse(line) as { route?: string; milliseconds?: number };
      if (route === undefined || took === undefined) continue;
      routes.set(route, [...(routes.get(route) ?? []), took]);
    }
    const each = [...routes].map(([route, times]) => {
      return `${(times.length / messages).toFixed(1)} × ${route} ${milliseconds(quantile(times, 0.5))}`;
    });
    const all = [...routes.values()].reduce((sum, times) => sum + times.length, 0);
    const note = `p50 of each: ${each.join(', ')}`;
    return { kind: 'beside', what: 'requests to the gateway per message', value: (all / messages).toFixed(1), note };
  }

  /** One message after the other in a session; milliseconds of each until its answer is heard. */
  async conversation(session: string): Promise<number[]> {
    const heard = new Heard();
    const over = new AbortController();
    const path = `${this.#agentPath()}/sessions/${session}/events?follow=true`;
    const following = this.#follow(path, (line) => heard.tell(line), over.signal);
    const times: number[] = [];
    for (let message = 0; message < CALLS; message += 1) {
      await sleep(BETWEEN_MS);
      const begun = performance.now();
      const { id } = await this.#say(session);
      await heard.of(id);
      times.push(performance.now() - begun);
    }
    over.abort();
    await following;
    return times;
  }

  /** The model without anything of ours. */
  async askModel(): Promise<void> {
    const body = { model: 'scripted', stream: true, messages: [{ role: 'user', content: 'Go on.' }] };
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(`${this.#model}/v1/chat/completions`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    });
    if (answer.status !== 200) throw new Error(`the model: ${answer.status} ${await answer.text()}`);
    await answer.text();
  }

  async #start(): Promise<void> {
    const house = this.#house;
    const replay = await startReplay({ script: SCRIPT, clock: systemClock });
    this.#open.push(replay);
    this.#model = replay.url;
    await house.policy(NAMESPACE, 'bench', { models: { allow: ['replay/*'] } });
    const quotas = { messagesPerMinute: 100_000 };
    const { token } = await house.runningAgent(NAMESPACE, AGENT, { trustPolicyRef: { name: 'bench' }, quotas });
    this.#person = await house.personToken(NAMESPACE);
    const identity = await issueIdentity(this.#folder, 'gateway', GATEWAY_NAME);
    await this.#startGateway();
    await Promise.all(['doors', 'run', 'workspace'].map((name) => mkdir(join(this.#folder, name))));
    const doors = join(this.#folder, 'doors');
    await writeDoors(doors, { url: this.#url, name: GATEWAY_NAME, authority: identity.authority, token });
    const shared = ['--run', join(this.#folder, 'run'), '--workspace', join(this.#folder, 'workspace')];
    this.#parts['agent'] = new RoleProcess('agent', ['--doors', doors, '--token', join(doors, 'token'), ...shared]);
    this.#parts['sandbox'] = new RoleProcess('sandbox', ['--agent-uid', String(process.getuid?.() ?? 0), ...shared]);
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
      ...this.#house.configuration(),
      listen: { host: '127.0.0.1', port: gateway },
      health: { host: '127.0.0.1', port: health },
      tls: { certificate: at('gateway-tls.crt'), key: at('gateway-tls.key') },
      models,
    };
    await writeFile(at('gateway.json'), JSON.stringify(config));
    const part = new RoleProcess('gateway', ['--config', at('gateway.json')]);
    this.#parts['gateway'] = part;
    this.#url = `https://127.0.0.1:${gateway}`;
    const isReady = async () =>
      (await fetch(`http://127.0.0.1:${health}/readyz`).catch(() => undefined))?.status === 200;
    await Promise.race([
      eventually(isReady),
      part.exited.then((code) => {
        throw new Error(`the gateway ended with ${code}: ${part.log.slice(-2_000)}`);
      }),
    ]);
  }

  #agentPath(): string {
    return `${PEOPLE_PATH}/${NAMESPACE}/agents/${AGENT}`;
  }

  async #say(session: string): Promise<PersonReceipt> {
    this.#keys += 1;
    const headers = { 'content-type': 'application/json', 'idempotency-key': `key-${this.#keys}` };
    const sent = this.#request('POST', `${this.#agentPath()}/messages`, headers);
    sent.end(JSON.stringify({ text: 'Go on.', session }));
    const [status, received] = await new Promise<[number, string]>((resolve, reject) => {
      sent.once('error', reject).once('response', (response) => {
        text(response).then((body) => resolve([response.statusCode ?? 0, body]), reject);
      });
    });
    if (status !== 200) throw new Error(`the message: ${status} ${received}`);
    return JSON.parse(received) as PersonReceipt;
  }

  #follow(path: string, tell: (line: FollowLine) => void, signal: AbortSignal): Promise<void> {
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
          for (const line of lines) if (line !== '') tell(JSON.parse(line) as FollowLine);
        });
      });
      sent.end();
    });
  }

  #request(method: string, path: string, headers: Record<string, string>) {
    const options = { method, agent: this.#connections, headers: { ...headers, [TOKEN_HEADER]: this.#person } };
    return httpsRequest(new URL(path, this.#url), options);
  }
}

/** Answers as they come, whoever asks first. */
class Heard {
  readonly #answered = new Map<string, PromiseWithResolvers<void>>();

  tell(line: FollowLine): void {
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
