import { type ErrorCode, isErrorCode } from '../lib/error-codes.ts';
import { isJsonObject, type Json, type JsonObject, parseJsonBytes } from '../lib/json.ts';
import type { JetStreamConnection } from './connection/connection.ts';
import { BUCKETS, bucketStream, bucketSubject, token } from './jetstream/names.ts';
import { publish } from './jetstream/publish.ts';
import { readMessages } from './jetstream/stream-reader.ts';

/** Health of a model provider, observed in the gateways' calls. */
export interface ProviderHealth {
  provider: string;
  state: 'Available' | 'Unauthorized' | 'Unavailable';
  /** Error code of the failure. */
  code?: ErrorCode;
  /** Printable; contains no key and no tenant text. */
  message?: string;
  /** RFC 3339: start of this state. */
  since: string;
  /** The last fallback model that answered instead of a model of this provider. */
  fallback?: string;
  /** Aliases of its models that manifests may use, such as `default/judge`. */
  names?: readonly string[];
}

/** One entry per provider; the last write of any gateway wins. The operator sets conditions from it. Methods throw TEMPER_BUS_*. */
export interface ModelHealthStore {
  put(health: ProviderHealth): Promise<void>;
  list(): Promise<ProviderHealth[]>;
}

export function createModelHealthStore(connection: JetStreamConnection): ModelHealthStore {
  const subject = (key: string): string => bucketSubject(BUCKETS.health, key);
  return {
    async put(health) {
      const { names, ...plain } = health;
      const document: JsonObject = names === undefined ? { ...plain } : { ...plain, names: [...names] };
      await publish(connection, subject(token(health.provider)), document);
    },
    async list() {
      const found: ProviderHealth[] = [];
      for await (const { data } of readMessages(connection, bucketStream(BUCKETS.health), subject('*'))) {
        const health = parseHealth(parseJsonBytes(data));
        if (health !== undefined) found.push(health);
      }
      return found;
    },
  };
}

function parseHealth(value: Json | undefined): ProviderHealth | undefined {
  if (!isJsonObject(value)) return undefined;
  const { provider, state, code, message, since, fallback, names } = value;
  if (typeof provider !== 'string' || typeof since !== 'string') return undefined;
  if (state !== 'Available' && state !== 'Unauthorized' && state !== 'Unavailable') return undefined;
  return {
    provider,
    state,
    since,
    ...(isErrorCode(code) ? { code } : {}),
    ...(typeof message === 'string' ? { message } : {}),
    ...(typeof fallback === 'string' ? { fallback } : {}),
    ...(Array.isArray(names) ? { names: names.filter((name) => typeof name === 'string') } : {}),
  };
}
