import type { SessionHistory, Memory, MemoryHit, MemoryValue, SessionStore } from '../agent/ports.ts';
import type { Clock } from '../lib/clock.ts';
import { isTemperError } from '../lib/errors.ts';
import type { IdGenerator } from '../lib/ids.ts';
import type { Json } from '../lib/json.ts';
import type { CallOptions } from '../lib/call-options.ts';
import type { ModelMessage } from '../models/port.ts';
import type { GatewayClient } from './gateway-client.ts';
import { requireList, requireNumber, requireObject, requireText } from '../gateway-api/response-parsing.ts';
import {
  type AppendRequest,
  DELIVERY_TOKEN_HEADER,
  type MemoryWrite,
  POD_API_PATHS,
  type SessionAppend,
} from '../gateway-api/pod-api.ts';
import type { StagedItems } from './session/staged-items.ts';

interface RemoteOptions {
  client: GatewayClient;
  clock: Clock;
  ids: IdGenerator;
  /** The token of the current delivery; throws when the pod has no delivery. */
  deliveryToken: () => string;
  /** Aborts when the work on the current message is cancelled. */
  signal: () => AbortSignal;
}

export interface RemoteMemoryOptions extends RemoteOptions {
  /** Receives the signatures of the answers. */
  onAnswerSignature?: (signature: string) => void;
}

export interface RemoteSessionOptions extends RemoteOptions {
  /** The items that later requests carry. */
  staged: StagedItems;
  /** The history that came with the message, at the first call; undefined when the session must be read. */
  delivered: (session: string) => SessionHistory | undefined;
}

/** Milliseconds for one store call, retries included. */
const STORE_TIMEOUT_MS = 60_000;
const MAX_HITS = 100;
const MAX_KEYS = 1_000;

function opOf({ clock, ids, signal }: RemoteOptions): CallOptions {
  return { signal: signal(), deadline: clock.monotonic() + STORE_TIMEOUT_MS, key: ids.next('store') };
}

/** Session histories, stored by the gateway. */
export function remoteSessions(options: RemoteSessionOptions): SessionStore {
  const { client } = options;
  return {
    async load(session) {
      const delivered = options.delivered(session);
      if (delivered !== undefined) return delivered;
      return historyIn(await client.call({ method: 'GET', path: sessionPath(session), op: opOf(options) }));
    },
    async append(session, afterSeq, items, flags = {}) {
      options.staged.add(afterSeq, items, flags);
      if (flags.deferrable !== true) await options.staged.flush(storeAppend(session, options));
      return afterSeq + items.length;
    },
    async close(session) {
      await client.call({ method: 'DELETE', path: sessionPath(session), op: opOf(options) });
    },
  };
}

/** Stores an append of the current message with a request of its own. */
export function storeAppend(session: string, options: RemoteOptions): (append: SessionAppend) => Promise<void> {
  return async (append) => {
    const body: AppendRequest = { deliveryToken: options.deliveryToken(), ...append };
    const path = `${sessionPath(session)}/items`;
    await options.client.call({ method: 'POST', path, body, op: opOf(options) });
  };
}

export function sessionPath(session: string): string {
  return `${POD_API_PATHS.sessions}/${encodeURIComponent(session)}`;
}

export function historyIn(answer: Json | undefined): SessionHistory {
  const value = requireObject(answer, 'history');
  const items = requireList(value['items'], 'history.items');
  for (const item of items) requireText(requireObject(item, 'history.items'), 'role', 'history.items');
  return {
    seq: requireNumber(value, 'seq', 'history'),
    items: items as unknown as ModelMessage[],
    tainted: value['tainted'] === true,
    ...(value['private'] === true ? { private: true } : {}),
  };
}

/** The agent's memory beyond sessions, stored by the gateway. */
export function remoteMemory(options: RemoteMemoryOptions): Memory {
  const { client, onAnswerSignature } = options;
  const signed = onAnswerSignature === undefined ? {} : { onAnswerSignature };
  const path = (key: string): string => `${POD_API_PATHS.memory}/${encodeURIComponent(key)}`;
  // The gateway signs its answers for the message of this token.
  const carried = () => ({ ...signed, headers: { [DELIVERY_TOKEN_HEADER]: options.deliveryToken() } });
  return {
    async get(key) {
      try {
        const found = await client.call({ ...carried(), method: 'GET', path: path(key), op: opOf(options) });
        return found === undefined ? undefined : valueIn(found, 'value');
      } catch (error) {
        if (isTemperError(error) && error.details['status'] === 404) return undefined;
        throw error;
      }
    },
    async set(key, value, { tainted } = { tainted: false }) {
      const body: MemoryWrite = { value, ...(tainted ? { tainted } : {}) };
      await client.call({ ...carried(), method: 'PUT', path: path(key), body, op: opOf(options) });
    },
    async delete(key) {
      const answer = await client.call({ ...carried(), method: 'DELETE', path: path(key), op: opOf(options) });
      return requireObject(answer, 'deleted')['deleted'] === true;
    },
    async list(prefix, limit, isReadable) {
      const answer = await client.call({
        ...carried(),
        method: 'GET',
        path: POD_API_PATHS.memoryKeys,
        query: { prefix, limit: String(Math.min(MAX_KEYS, limit)) },
        op: opOf(options),
      });
      const value = requireObject(answer, 'keys');
      const keys = requireList(value['keys'], 'keys').filter((key) => typeof key === 'string' && isReadable(key));
      return { keys: keys as string[], complete: value['complete'] === true, tainted: value['tainted'] !== false };
    },
    async search(query, limit, isReadable) {
      const answer = await client.call({
        ...carried(),
        method: 'GET',
        path: POD_API_PATHS.memory,
        query: { query, limit: String(Math.min(MAX_HITS, limit)) },
        op: opOf(options),
      });
      const hits = requireList(answer, 'hits').map(hitIn);
      return hits.filter(({ key }) => isReadable(key)).slice(0, limit);
    },
  };
}

function hitIn(value: Json): MemoryHit {
  const hit = requireObject(value, 'hits');
  return { key: requireText(hit, 'key', 'hits'), ...valueIn(value, 'hits') };
}

/** A value without the member comes from a gateway that did not record it. */
function valueIn(found: Json, path: string): MemoryValue {
  const { value = null, tainted } = requireObject(found, path);
  return { value, tainted: tainted !== false };
}
