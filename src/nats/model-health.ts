import type { KV } from '@nats-io/kv';
import type { ErrorCode } from '../lib/error-codes.ts';
import { isErrorCode } from '../lib/error-codes.ts';
import { isJsonObject, parseUntrustedJson } from '../lib/json.ts';

/** Bucket with one entry a provider, for conditions. */
export const MODEL_HEALTH_BUCKET = 'temper-health';

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
}

/** The states of all providers, the last word of any gateway. */
export interface ModelHealthStore {
  put(health: ProviderHealth): Promise<void>;
  list(): Promise<ProviderHealth[]>;
  /** What is there and each change, until the signal is aborted. */
  watch(signal: AbortSignal): AsyncIterable<ProviderHealth>;
}

export function modelHealthStore(bucket: KV): ModelHealthStore {
  return {
    async put(health) {
      await bucket.put(health.provider, JSON.stringify(health));
    },
    async list() {
      const found: ProviderHealth[] = [];
      for await (const key of await bucket.keys()) {
        const entry = await bucket.get(key);
        const health = entry === null ? undefined : healthFrom(entry.string());
        if (health !== undefined) found.push(health);
      }
      return found;
    },
    async *watch(signal) {
      if (signal.aborted) return;
      const entries = await bucket.watch({ ignoreDeletes: true });
      const stop = (): void => entries.stop();
      signal.addEventListener('abort', stop, { once: true });
      try {
        for await (const entry of entries) {
          const health = healthFrom(entry.string());
          if (health !== undefined) yield health;
        }
      } finally {
        signal.removeEventListener('abort', stop);
        stop();
      }
    },
  };
}

function healthFrom(text: string): ProviderHealth | undefined {
  let value;
  try {
    value = parseUntrustedJson(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
  if (!isJsonObject(value)) return undefined;
  const { provider, state, code, message, since, fallback } = value;
  if (typeof provider !== 'string' || typeof since !== 'string') return undefined;
  if (state !== 'Available' && state !== 'Unauthorized' && state !== 'Unavailable') return undefined;
  return {
    provider,
    state,
    since,
    ...(typeof code === 'string' && isErrorCode(code) ? { code } : {}),
    ...(typeof message === 'string' ? { message } : {}),
    ...(typeof fallback === 'string' ? { fallback } : {}),
  };
}
