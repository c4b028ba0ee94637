import { type ErrorCode, isErrorCode } from '../lib/error-codes.ts';
import { isJsonObject, type Json, type JsonObject } from '../lib/json.ts';
import type { BusConnection } from './connection.ts';
import { BUCKETS, bucketStream, bucketSubject, token } from './names.ts';
import { publish } from './publish.ts';
import { jsonOf, storedMessages } from './stored.ts';

/** How a provider of models does, as the gateways' calls show it. */
export interface ProviderHealth {
  provider: string;
  state: 'Available' | 'Unauthorized' | 'Unavailable';
  /** Of the failure. */
  code?: ErrorCode;
  /** Printable; no key and nothing a tenant wrote. */
  message?: string;
  /** RFC 3339: since when it is so. */
  since: string;
  /** The last model that answered in the place of one of this provider. */
  fallback?: string;
  /** Other names of its models that manifests may use, such as `default/judge`. */
  names?: readonly string[];
}

/** One entry a provider, the last word of any gateway; conditions are made from it. */
export interface ModelHealthStore {
  put(health: ProviderHealth): Promise<void>;
  list(): Promise<ProviderHealth[]>;
}

export function modelHealthStore(connection: BusConnection): ModelHealthStore {
  const subject = (key: string): string => bucketSubject(BUCKETS.health, key);
  return {
    async put(health) {
      const { names, ...plain } = health;
      const document: JsonObject = names === undefined ? { ...plain } : { ...plain, names: [...names] };
      await publish(connection, subject(token(health.provider)), document);
    },
    async list() {
      const found: ProviderHealth[] = [];
      for await (const { data } of storedMessages(connection, bucketStream(BUCKETS.health), subject('*'))) {
        const health = healthFrom(jsonOf(data));
        if (health !== undefined) found.push(health);
      }
      return found;
    },
  };
}

function healthFrom(value: Json | undefined): ProviderHealth | undefined {
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
