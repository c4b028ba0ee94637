import { createHash } from 'node:crypto';
import { Agent } from 'undici';
import { TemperError } from '../../lib/errors.ts';
import type { TlsCredentials } from './loaded-cluster.ts';
import { OrphanStreamGuard } from './http2-orphan-streams.ts';

/**
 * Calls share few connections. Watches, which stay open for minutes, use separate connections, so that no call waits behind a watch. The Lease
 * has its own, so that no burst of writes delays a renewal and a dead connection is replaced without affecting them.
 */
export type ConnectionPurpose = 'calls' | 'watches' | 'lease';

const PING_INTERVAL_MS = 15_000;
const CONNECT_TIMEOUT_MS = 10_000;
/** The lifetime of an idle connection: shorter than the server's, longer than the pauses between calls of a role. */
const KEEP_ALIVE_MS = 60_000;

/**
 * Over HTTP/2 a hundred calls share one connection. The number of watch connections is unlimited: a server without HTTP/2 needs one per
 * watch.
 */
const SETTINGS = {
  calls: { connections: 2, headersTimeout: 60_000, bodyTimeout: 60_000 },
  lease: { connections: 1, headersTimeout: 60_000, bodyTimeout: 60_000 },
  watches: { headersTimeout: 60_000, bodyTimeout: 0 },
} as const satisfies Record<ConnectionPurpose, Agent.Options>;

interface ConnectionPool {
  readonly key: string;
  readonly agent: Agent;
}

/** The connections to one API server. Changed certificates open new connections; the old ones close after their last response. */
export class Connections implements AsyncDisposable {
  readonly #pools = new Map<ConnectionPurpose, ConnectionPool>();
  readonly #retired = new Set<Agent>();
  readonly #orphanStreams = new OrphanStreamGuard();
  #disposed = false;

  /** Throws `TEMPER_KUBE_UNREACHABLE` after disposal, so that a late call opens no new connection. */
  agent(purpose: ConnectionPurpose, tls: TlsCredentials): Agent {
    if (this.#disposed)
      throw new TemperError('TEMPER_KUBE_UNREACHABLE', 'the connections to the API server were closed');
    const key = digestOf(tls);
    const pool = this.#pools.get(purpose);
    if (pool?.key === key) return pool.agent;
    this.retire(purpose);
    const connect = { ...tls, timeout: CONNECT_TIMEOUT_MS, keepAlive: true, keepAliveInitialDelay: 30_000 };
    const agent = new Agent({
      ...SETTINGS[purpose],
      keepAliveTimeout: KEEP_ALIVE_MS,
      connect,
      allowH2: true,
      h2Options: { pingInterval: PING_INTERVAL_MS },
    });
    this.#pools.set(purpose, { key, agent });
    return agent;
  }

  /** Makes the next call open a new connection, since the current one sent no response and may be dead. Calls in flight finish on the old one. */
  retire(purpose: ConnectionPurpose): void {
    const agent = this.#pools.get(purpose)?.agent;
    if (agent === undefined) return;
    this.#pools.delete(purpose);
    this.#retired.add(agent);
    const forget = (): void => void this.#retired.delete(agent);
    agent.close().then(forget, forget);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#disposed = true;
    const all = [...this.#retired, ...[...this.#pools.values()].map(({ agent }) => agent)];
    this.#pools.clear();
    await Promise.all(all.map((agent) => agent.destroy()));
    this.#orphanStreams[Symbol.dispose]();
  }
}

function digestOf(tls: TlsCredentials): string {
  const hash = createHash('sha256');
  for (const part of [tls.ca, tls.cert, tls.key, tls.servername, String(tls.rejectUnauthorized)]) {
    const bytes = Buffer.from(part ?? '');
    hash.update(`${bytes.length}:`).update(bytes);
  }
  return hash.digest('hex');
}
