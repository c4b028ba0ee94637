import { Agent } from 'node:https';
import type { SecureContext } from 'node:tls';
import { setTimeout as sleep } from 'node:timers/promises';
import { USERS_PATH, USER_TOKEN_HEADER } from '../../../src/gateway-api/user-api.ts';
import { textAt, parseJsonBytes } from '../../../src/lib/json.ts';
import { STREAMS } from '../../../src/nats/jetstream/names.ts';
import { readMessages } from '../../../src/nats/jetstream/stream-reader.ts';
import { callGateway } from './http-client.ts';
import { RenewedToken } from './renewed-token.ts';
import { GATEWAY_NAME, type ScaleCluster } from './scale-cluster.ts';

const TIMEOUT_MS = 30_000;
const RETRY_MS = 500;
const MAX_CONNECTIONS = 16;

interface SentMessage {
  /** Before the first request of the user. */
  sentAt: number;
  deliveries: number;
  acks: number;
  /** After the first confirmed acknowledgement of the pod. */
  answeredAt: number | undefined;
}

/** Sends messages as users do, and records what happens to each. */
export class UserMessages {
  readonly #cluster: ScaleCluster;
  readonly #agent: Agent;
  readonly #tokens: ReadonlyMap<string, RenewedToken>;
  readonly #messages = new Map<string, SentMessage>();
  #serial = 0;

  private constructor(cluster: ScaleCluster, tokens: ReadonlyMap<string, RenewedToken>, secureContext: SecureContext) {
    this.#cluster = cluster;
    this.#tokens = tokens;
    const servername = GATEWAY_NAME;
    this.#agent = new Agent({ keepAlive: true, maxSockets: MAX_CONNECTIONS, secureContext, servername });
  }

  static async open(cluster: ScaleCluster, secureContext: SecureContext): Promise<UserMessages> {
    const tokens = await Promise.all(
      cluster.namespaces.map(async (name) => [name, await RenewedToken.open(() => cluster.userToken(name))] as const),
    );
    return new UserMessages(cluster, new Map(tokens), secureContext);
  }

  /** Sends one message, again with the same key until a gateway accepts it. */
  async send(namespace: string, agent: string, signal: AbortSignal): Promise<void> {
    this.#serial += 1;
    const serial = this.#serial;
    const start = performance.now();
    for (let attempt = 0; !signal.aborted; attempt += 1) {
      const port = this.#cluster.ports[(serial + attempt) % this.#cluster.ports.length] ?? 0;
      const id = await this.#post(port, namespace, agent, `key-${serial}`);
      if (id !== undefined) {
        this.#of(id, start);
        return;
      }
      await sleep(RETRY_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  onDelivery(id: string): void {
    this.#of(id).deliveries += 1;
  }

  onAcked(id: string): void {
    const message = this.#of(id);
    message.acks += 1;
    message.answeredAt ??= performance.now();
  }

  get sent(): number {
    return this.#messages.size;
  }

  get answered(): number {
    return [...this.#messages.values()].filter(({ acks }) => acks > 0).length;
  }

  /** Milliseconds per answered message. */
  times(): number[] {
    return [...this.#messages.values()].flatMap(({ sentAt, answeredAt }) =>
      answeredAt === undefined ? [] : [answeredAt - sentAt],
    );
  }

  /** Compares the messages with the replies that NATS stores: each must have exactly one. */
  async audit(): Promise<{ lost: number; doubled: number; redelivered: number }> {
    const replies = new Map<string, number>();
    const connection = await this.#cluster.nats.connect('gateway');
    for await (const { data } of readMessages(connection, STREAMS.replies, 'temper.replies.>')) {
      const line = parseJsonBytes(data);
      const id = textAt(line, ['message']);
      replies.set(id, (replies.get(id) ?? 0) + 1);
    }
    const all = [...this.#messages].map(([id, { acks, deliveries }]) => ({
      acks,
      deliveries,
      replies: replies.get(id) ?? 0,
    }));
    return {
      lost: all.filter(({ replies: count }) => count === 0).length,
      doubled: all.filter(({ acks, replies: count }) => count > 1 || acks > 1).length,
      redelivered: all.filter(({ deliveries }) => deliveries > 1).length,
    };
  }

  close(): void {
    this.#agent.destroy();
  }

  /** A pod may receive the message before its sender has the response. */
  #of(id: string, sentAt = performance.now()): SentMessage {
    const message = this.#messages.get(id) ?? { sentAt, deliveries: 0, acks: 0, answeredAt: undefined };
    message.sentAt = Math.min(message.sentAt, sentAt);
    this.#messages.set(id, message);
    return message;
  }

  /** The id of the message; undefined when the gateway did not accept it. */
  async #post(port: number, namespace: string, agent: string, key: string): Promise<string | undefined> {
    const path = `${USERS_PATH}/${namespace}/agents/${agent}/messages`;
    const token = (await this.#tokens.get(namespace)?.current()) ?? '';
    const headers = { [USER_TOKEN_HEADER]: token, 'idempotency-key': key };
    const call = { agent: this.#agent, port, method: 'POST', path, headers, body: { text: 'Go on.' } } as const;
    try {
      const { status, body } = await callGateway({ ...call, timeoutMs: TIMEOUT_MS });
      return status === 200 ? String(body['id']) : undefined;
    } catch {
      return undefined;
    }
  }
}
