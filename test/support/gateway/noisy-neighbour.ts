import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import type { PodDelivery } from '../../../src/gateway-api/pod-api.ts';
import type { UserMessageReceipt } from '../../../src/gateway-api/user-api.ts';
import { createNatsAudit } from '../../../src/nats/audit.ts';
import { RoleProcess } from '../../../src/pod/pod.testing.ts';
import { freePorts } from '../../cluster/process.ts';
import { pollValue } from '../poll.ts';
import { GatewayFixture, httpsClient, type HttpRequestOptions, type HttpResponse } from './gateway-fixture.ts';

const MIB = 1_048_576;
/** Most of a gateway's resident memory at any time. Its container has 512 MiB. */
export const MAX_RESIDENT_MIB = 400;
/** Rounds of the victim, at least, and while an attack goes on. */
const MIN_ROUNDS = 3;
/** The gateway limits connections per address, so each neighbour has its own. */
const ADDRESSES = { attacker: '127.0.0.1', victim: '127.0.0.2', users: '127.0.0.3' } as const;

export interface NeighbourOptions {
  /** Section `models` of the gateway. Absent: none. */
  models?: object;
  /** Spec of the attacker's own policy. Absent: that of every agent. */
  attackerPolicy?: object;
  /** Further members of the spec of the attacker. */
  attacker?: object;
}

/** The pod of an agent that misuses its valid token. */
export class Attacker {
  readonly port: number;
  readonly token: string;
  readonly uid: string;
  readonly #userToken: string;

  constructor(port: number, { uid, token }: { uid: string; token: string }, userToken: string) {
    this.port = port;
    this.uid = uid;
    this.token = token;
    this.#userToken = userToken;
  }

  /** A call with the token of the attacker's pod. */
  call(method: string, path: string, options: HttpRequestOptions = {}): Promise<HttpResponse> {
    return httpsClient(this.port)(method, path, { token: this.token, localAddress: ADDRESSES.attacker, ...options });
  }

  /** A TLS connection for raw requests, from the attacker's address. Rejects when the gateway closes it before it is secure. */
  async open(): Promise<TLSSocket> {
    const socket = connect({ host: '127.0.0.1', port: this.port, rejectUnauthorized: false });
    socket.on('error', () => undefined);
    await new Promise<void>((resolve, reject) => {
      socket.once('secureConnect', resolve);
      socket.once('close', () => reject(new Error('the gateway closed the connection')));
    });
    return socket;
  }

  /** A message of a user to the attacker, delivered to its pod. */
  deliver(session = 's-attack'): Promise<PodDelivery> {
    return deliver(this.port, 'team-a', 'attacker', { pod: this.token, user: this.#userToken }, session);
  }
}

/** A gateway as a process, an attacker in namespace `team-a`, and a victim in namespace `team-b`. */
export class NoisyNeighbours implements AsyncDisposable {
  readonly fixture: GatewayFixture;
  readonly attacker: Attacker;
  readonly #gateway: RoleProcess;
  readonly #victim: { uid: string; token: string };
  readonly #userToken: string;
  #rounds = 0;

  private constructor(
    fixture: GatewayFixture,
    gateway: RoleProcess,
    attacker: Attacker,
    victim: { uid: string; token: string },
    userToken: string,
  ) {
    this.fixture = fixture;
    this.attacker = attacker;
    this.#gateway = gateway;
    this.#victim = victim;
    this.#userToken = userToken;
  }

  static async start({ models, attackerPolicy, attacker: more }: NeighbourOptions = {}): Promise<NoisyNeighbours> {
    const fixture = await GatewayFixture.open(['team-a', 'team-b']);
    const { port, healthPort } = await freePorts('port', 'healthPort');
    const config = {
      ...fixture.replicaConfig(),
      listen: { host: '127.0.0.1', port },
      health: { host: '127.0.0.1', port: healthPort },
      ...(models === undefined ? {} : { models }),
    };
    const file = join(fixture.folder, 'gateway.yaml');
    await writeFile(file, JSON.stringify(config));
    const gateway = new RoleProcess('gateway', ['--config', file]);
    try {
      const ready = () =>
        fetch(`http://127.0.0.1:${healthPort}/readyz`).then(
          ({ status }) => status,
          () => 0,
        );
      await pollValue('the readiness of the gateway', ready, (status) => status === 200);
      if (attackerPolicy !== undefined) await fixture.createPolicy('team-a', 'hostile', attackerPolicy);
      const spec = { ...more, ...(attackerPolicy === undefined ? {} : { trustPolicyRef: { name: 'hostile' } }) };
      const [hostile, victim] = [
        await createAgent(fixture, 'team-a', 'attacker', spec),
        await createAgent(fixture, 'team-b', 'victim', {}, ADDRESSES.victim),
      ];
      await Promise.all([whenKnown(port, hostile, ADDRESSES.attacker), whenKnown(port, victim, ADDRESSES.victim)]);
      const attacker = new Attacker(port, hostile, await fixture.createUserToken('team-a'));
      return new NoisyNeighbours(fixture, gateway, attacker, victim, await fixture.createUserToken('team-b'));
    } catch (error) {
      await gateway.end('SIGKILL');
      await fixture[Symbol.asyncDispose]();
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#gateway.end('SIGKILL');
    await this.fixture[Symbol.asyncDispose]();
  }

  /**
   * Runs the attack while the victim works, and asserts that the victim notices nothing: no call of it is refused, every message is
   * answered, its records are stored, and the gateway stays below its memory.
   */
  async survive(attack: (attacker: Attacker) => Promise<unknown>): Promise<void> {
    const attacking = { ended: false };
    const ending = attack(this.attacker).finally(() => {
      attacking.ended = true;
    });
    const working = this.#work(attacking);
    await Promise.all([ending, working]);
    await this.#assertRecords();
    const peak = await this.peakResidentMiB();
    assert.ok(peak <= MAX_RESIDENT_MIB, `the gateway had ${peak} MiB resident memory, of at most ${MAX_RESIDENT_MIB}`);
  }

  /** The highest resident memory of the gateway's process so far. */
  async peakResidentMiB(): Promise<number> {
    const status = await readFile(`/proc/${this.#gateway.child.pid}/status`, 'utf8');
    const [, kibibytes = '0'] = /VmHWM:\s+(\d+) kB/.exec(status) ?? [];
    return Math.round((Number(kibibytes) * 1_024) / MIB);
  }

  async #work(attacking: { ended: boolean }): Promise<void> {
    for (let round = 0; round < MIN_ROUNDS || !attacking.ended; round += 1) await this.#round();
  }

  /** One message: sent by a user, received, reported about, kept in the session and acknowledged. */
  async #round(): Promise<void> {
    this.#rounds += 1;
    const name = `round-${this.#rounds}`;
    const tokens = { pod: this.#victim.token, user: this.#userToken };
    const { port } = this.attacker;
    const { deliveryToken } = await deliver(port, 'team-b', 'victim', tokens, name);
    const record = { action: 'victim.worked', actor: '', evidence: 'reported', subject: name, facts: {} };
    await this.#victimCall('/v1/reports', `report-${name}`, { audit: [record] });
    const items = [{ role: 'user', text: name }];
    await this.#victimCall(`/v1/sessions/${name}/items`, `items-${name}`, { deliveryToken, afterSeq: 0, items });
    const outcome = { deliveryToken, action: 'ack', reply: `reply of ${name}`, finishReason: 'complete' };
    await this.#victimCall('/v1/deliveries', `ack-${name}`, outcome);
  }

  async #victimCall(path: string, key: string, body: object): Promise<void> {
    const { status, text } = await patiently(() =>
      httpsClient(this.attacker.port)('POST', path, {
        token: this.#victim.token,
        localAddress: ADDRESSES.victim,
        key,
        body,
      }),
    );
    assert.ok(status === 200 || status === 204, `the victim was refused at ${path}: ${status} ${text}`);
  }

  async #assertRecords(): Promise<void> {
    const names = Array.from({ length: this.#rounds }, (_, index) => `round-${index + 1}`);
    const audit = await createNatsAudit(await this.fixture.nats.connect('gateway')).all('team-b', 100_000);
    const subjects = new Set(audit.filter(({ action }) => action === 'victim.worked').map(({ subject }) => subject));
    assert.deepEqual([...subjects].toSorted(), names.toSorted());
    for (const name of names) {
      const path = `/v1/users/namespaces/team-b/agents/victim/sessions/${name}/events`;
      const options = { userToken: this.#userToken, localAddress: ADDRESSES.users };
      const { text } = await patiently(() => httpsClient(this.attacker.port)('GET', path, options));
      assert.ok(text.includes(`reply of ${name}`), `the reply of ${name} is lost: ${text}`);
      const history = await patiently(() =>
        httpsClient(this.attacker.port)('GET', `/v1/sessions/${name}`, {
          token: this.#victim.token,
          localAddress: ADDRESSES.victim,
        }),
      );
      assert.ok(history.text.includes(`"text":"${name}"`), `the history of ${name} is lost: ${history.text}`);
    }
  }
}

/** Repeats a call that the gateway is too busy for, as pods do: on a slow machine its event loop may be late. A refusal is returned. */
async function patiently(call: () => Promise<HttpResponse>): Promise<HttpResponse> {
  return pollValue('a response of the gateway', call, ({ status }) => status !== 503);
}

async function createAgent(fixture: GatewayFixture, namespace: string, name: string, spec: object, address?: string) {
  const uid = await fixture.createAgent(namespace, name, spec);
  const pod = await fixture.createPod(namespace, `${name}-1`, address ?? ADDRESSES.attacker);
  await fixture.bindPod(namespace, name, pod);
  return { uid, token: await fixture.createPodToken(namespace, pod) };
}

async function whenKnown(port: number, { token }: { token: string }, localAddress: string): Promise<void> {
  await pollValue(
    'the gateway to know the agent',
    async () => (await httpsClient(port)('GET', '/v1/assignment', { token, localAddress })).status,
    (status) => status === 200,
  );
}

/** Sends a message to the agent and receives it as its pod. */
async function deliver(
  port: number,
  namespace: string,
  agent: string,
  tokens: { pod: string; user: string },
  session: string,
): Promise<PodDelivery> {
  const call = httpsClient(port);
  const localAddress = namespace === 'team-b' ? ADDRESSES.victim : ADDRESSES.attacker;
  const sent = await patiently(() =>
    call('POST', `/v1/users/namespaces/${namespace}/agents/${agent}/messages`, {
      userToken: tokens.user,
      localAddress: ADDRESSES.users,
      key: `message-${session}`,
      body: { text: `work on ${session}`, session },
    }),
  );
  assert.equal(sent.status, 200, sent.text);
  const { id } = JSON.parse(sent.text) as UserMessageReceipt;
  const next = await pollValue(
    `the delivery of ${session}`,
    () => call('POST', '/v1/messages/next', { token: tokens.pod, localAddress, body: { waitSeconds: 20 } }),
    ({ status }) => status !== 204 && status !== 503,
  );
  assert.equal(next.status, 200, next.text);
  const delivery = JSON.parse(next.text) as PodDelivery;
  assert.equal(delivery.message.id, id);
  return delivery;
}
