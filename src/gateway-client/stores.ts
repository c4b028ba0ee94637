import type { SessionHistory, Memory, MemoryHit, SessionStore } from '../agent/ports.ts';
import type { Clock } from '../lib/clock.ts';
import { isTemperError } from '../lib/errors.ts';
import type { IdGenerator } from '../lib/ids.ts';
import { type Json, member } from '../lib/json.ts';
import type { CallOptions } from '../lib/call-options.ts';
import type { ModelMessage } from '../models/port.ts';
import type { GatewayClient } from './gateway-client.ts';
import { requireList, requireNumber, requireObject, requireText } from '../gateway-api/response-parsing.ts';
import { type AppendRequest, type MemoryValue, POD_API_PATHS } from '../gateway-api/pod-api.ts';

export interface RemoteStoreOptions {
  client: GatewayClient;
  clock: Clock;
  ids: IdGenerator;
  /** The token of the current delivery; throws when the pod has no delivery. */
  deliveryToken: () => string;
  /** Aborts when the work on the current message is cancelled. */
  signal: () => AbortSignal;
}

/** Milliseconds for one store call, retries included. */
const STORE_TIMEOUT_MS = 60_000;
const MAX_HITS = 100;

function opOf({ clock, ids, signal }: RemoteStoreOptions): CallOptions {
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
      const body: AppendRequest = { deliveryToken: options.deliveryToken(), afterSeq, items, ...tainted };
      const answer = await client.call({
        method: 'POST',
        path: `${sessionPath(session)}/items`,
        body,
        op: opOf(options),
      });
      return requireNumber(requireObject(answer, 'append'), 'seq', 'append');
    },
    async close(session) {
      await client.call({ method: 'DELETE', path: sessionPath(session), op: opOf(options) });
    },
  };
}

export function sessionPath(session: string): string {
  return `${POD_API_PATHS.sessions}/${encodeURIComponent(session)}`;
}

function historyIn(answer: Json | undefined): SessionHistory {
  const value = requireObject(answer, 'history');
  const items = requireList(value['items'], 'history.items');
  for (const item of items) requireText(requireObject(item, 'history.items'), 'role', 'history.items');
  return {
    seq: requireNumber(value, 'seq', 'history'),
    items: items as unknown as ModelMessage[],
    tainted: value['tainted'] === true,
  };
}

/** The agent's memory beyond sessions, stored by the gateway. */
export function remoteMemory(options: RemoteStoreOptions): Memory {
  const { client } = options;
  const path = (key: string): string => `${POD_API_PATHS.memory}/${encodeURIComponent(key)}`;
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
      const body: MemoryValue = { value };
      await client.call({ method: 'PUT', path: path(key), body, op: opOf(options) });
    },
    async search(query, limit) {
      const answer = await client.call({
        method: 'GET',
        path: POD_API_PATHS.memory,
        query: { query, limit: String(Math.min(MAX_HITS, limit)) },
        op: opOf(options),
      });
      return requireList(answer, 'hits').map(hitIn);
    },
  };
}

function hitIn(value: Json): MemoryHit {
  const hit = requireObject(value, 'hits');
  return { key: requireText(hit, 'key', 'hits'), value: hit['value'] ?? null };
}
