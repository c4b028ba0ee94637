import { createHash } from 'node:crypto';
import { Agent } from 'undici';
import { TemperError } from '../lib/errors.ts';
import type { TlsFacts } from './cluster-access.ts';
import { StrayAnswers } from './stray-answers.ts';

/** Calls share few connections; streams that stay open for minutes have their own, so that no call waits behind one. */
export type Purpose = 'calls' | 'watches';

const PING_INTERVAL = 15_000;
const CONNECT_TIMEOUT = 10_000;
/** How long a connection nobody uses is kept: shorter than the server keeps it, longer than a role is quiet. */
const KEEP_ALIVE = 60_000;

/**
 * Over HTTP/2 a hundred calls share a connection. Watches get as many connections as they need: a server without HTTP/2 needs one for
 * each.
 */
const SETTINGS = {
  calls: { connections: 2, headersTimeout: 60_000, bodyTimeout: 60_000 },
  watches: { headersTimeout: 60_000, bodyTimeout: 0 },
} as const satisfies Record<Purpose, Agent.Options>;

interface Pool {
  readonly key: string;
  readonly agent: Agent;
}

/** The connections to one API server. Other certificates make other connections; the old ones end when their last answer does. */
export class Connections implements AsyncDisposable {
  readonly #pools = new Map<Purpose, Pool>();
  readonly #retired = new Set<Agent>();
  readonly #strayAnswers = new StrayAnswers();
  #ended = false;

  /** Throws `TEMPER_KUBE_UNREACHABLE` after the end: whoever calls then must not open anything any more. */
  agent(purpose: Purpose, tls: TlsFacts): Agent {
    if (this.#ended) throw new TemperError('TEMPER_KUBE_UNREACHABLE', 'the connections to the API server were closed');
    const key = digestOf(tls);
    const pool = this.#pools.get(purpose);
    if (pool?.key === key) return pool.agent;
    this.retire(purpose);
    const connect = { ...tls, timeout: CONNECT_TIMEOUT, keepAlive: true, keepAliveInitialDelay: 30_000 };
    const agent = new Agent({
      ...SETTINGS[purpose],
      keepAliveTimeout: KEEP_ALIVE,
      connect,
      allowH2: true,
      h2Options: { pingInterval: PING_INTERVAL },
    });
    this.#pools.set(purpose, { key, agent });
    return agent;
  }

  /** The next call opens a new connection: this one gave no answer and may be dead. */
  retire(purpose: Purpose): void {
    const agent = this.#pools.get(purpose)?.agent;
    if (agent === undefined) return;
    this.#pools.delete(purpose);
    this.#retired.add(agent);
    const forget = (): void => void this.#retired.delete(agent);
    agent.close().then(forget, forget);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended = true;
    const all = [...this.#retired, ...[...this.#pools.values()].map(({ agent }) => agent)];
    this.#pools.clear();
    await Promise.all(all.map((agent) => agent.destroy()));
    this.#strayAnswers[Symbol.dispose]();
  }
}

function digestOf(tls: TlsFacts): string {
  const hash = createHash('sha256');
  for (const part of [tls.ca, tls.cert, tls.key, tls.servername, String(tls.rejectUnauthorized)]) {
    const bytes = Buffer.from(part ?? '');
    hash.update(`${bytes.length}:`).update(bytes);
  }
  return hash.digest('hex');
}
