import type { History, Memory, MemoryHit, SessionStore } from '../agent/ports.ts';
import type { Clock } from '../lib/clock.ts';
import { isTemperError } from '../lib/errors.ts';
import type { Ids } from '../lib/ids.ts';
import { type Json, member } from '../lib/json.ts';
import type { Op } from '../lib/operation.ts';
import type { ModelMessage } from '../models/port.ts';
import type { GatewayClient } from './gateway-client.ts';
import { listIn, numberIn, objectIn, textIn } from './reading.ts';
import { type AppendRequest, type MemoryPut, PATHS } from './wire.ts';

export interface RemoteStoreOptions {
  client: GatewayClient;
  clock: Clock;
  ids: Ids;
  /** The token of the current delivery; throws when the pod has no delivery. */
  lease: () => string;
  /** Aborts when the work on the current message is cancelled. */
  signal: () => AbortSignal;
}

/** Milliseconds for one store call, retries included. */
const STORE_TIMEOUT_MS = 60_000;
const MAX_HITS = 100;

function opOf({ clock, ids, signal }: RemoteStoreOptions): Op {
  return { signal: signal(), deadline: clock.monotonic() + STORE_TIMEOUT_MS, key: ids.next('store') };
}

/** Session histories, stored by the gateway. */
export function remoteSessions(options: RemoteStoreOptions): SessionStore {
  const { client } = options;
  return {
    async load(session) {
      return historyIn(await client.call({ method: 'GET', path: sessionPath(session), op: opOf(options) }));
    },
    async append(session, afterSeq, items, marks = {}) {
      const tainted = marks.tainted === true ? { tainted: true } : {};
      const body: AppendRequest = { lease: options.lease(), afterSeq, items, ...tainted };
      const answer = await client.call({
        method: 'POST',
        path: `${sessionPath(session)}/items`,
        body,
        op: opOf(options),
      });
      return numberIn(objectIn(answer, 'append'), 'seq', 'append');
    },
    async close(session) {
      await client.call({ method: 'DELETE', path: sessionPath(session), op: opOf(options) });
    },
  };
}

export function sessionPath(session: string): string {
  return `${PATHS.sessions}/${encodeURIComponent(session)}`;
}

function historyIn(answer: Json | undefined): History {
  const value = objectIn(answer, 'history');
  const items = listIn(value['items'], 'history.items');
  for (const item of items) textIn(objectIn(item, 'history.items'), 'role', 'history.items');
  return {
    seq: numberIn(value, 'seq', 'history'),
    items: items as unknown as ModelMessage[],
    tainted: value['tainted'] === true,
  };
}

/** The agent's memory beyond sessions, stored by the gateway. */
export function remoteMemory(options: RemoteStoreOptions): Memory {
  const { client } = options;
  const path = (key: string): string => `${PATHS.memory}/${encodeURIComponent(key)}`;
  return {
    async get(key) {
      try {
        return member(await client.call({ method: 'GET', path: path(key), op: opOf(options) }), 'value');
      } catch (error) {
        if (isTemperError(error) && error.details['status'] === 404) return undefined;
        throw error;
      }
    },
    async set(key, value) {
      const body: MemoryPut = { value };
      await client.call({ method: 'PUT', path: path(key), body, op: opOf(options) });
    },
    async search(query, limit) {
      const answer = await client.call({
        method: 'GET',
        path: PATHS.memory,
        query: { query, limit: String(Math.min(MAX_HITS, limit)) },
        op: opOf(options),
      });
      return listIn(answer, 'hits').map(hitIn);
    },
  };
}

function hitIn(value: Json): MemoryHit {
  const hit = objectIn(value, 'hits');
  return { key: textIn(hit, 'key', 'hits'), value: hit['value'] ?? null };
}
