/** The host functions that a job may declare. The text of these functions runs in the guest; see guest.ts. */
/* oxlint-disable typescript/unbound-method -- methods are taken from their objects on purpose, before guest code can change them */
import { defineHidden, type Primordials } from './guest-language.ts';
import { buildUndeclaredUse } from './guest-undeclared.ts';

/** The only channel from the guest to the runner; strings only. */
export type PostToRunner = (kind: string, first: string, second: string) => string;

export interface HostBridge {
  /** Calls the host. Resolves with the value, or rejects with an Error that has a `code`. */
  request(api: string, input: unknown): Promise<unknown>;
  /** The same with an input that is JSON text. */
  send(api: string, input: string): Promise<unknown>;
  deliver(call: string, ok: boolean, text: string): void;
  /** Forgets the calls without an answer; their promises never settle. */
  reset(): void;
}

export function buildBridge(own: Primordials, post: PostToRunner): HostBridge {
  interface PendingCall {
    resolve(value: unknown): void;
    reject(error: unknown): void;
  }
  const { create } = Object;
  let pending = create(null) as Record<string, PendingCall>;
  const RealPromise = Promise;
  const fail = (text: string): Error => {
    const { code, message } = own.parse(text) as { code: string; message: string };
    const error = new Error(message);
    own.define(error, 'code', { value: code, enumerable: true, configurable: true, writable: true });
    return error;
  };
  const send = (api: string, input: string): Promise<unknown> =>
    new RealPromise((resolve, reject) => {
      const call = post('call', api, input);
      pending[call] = { resolve, reject };
    });
  return {
    request: (api, input) => send(api, own.stringify(input) ?? 'null'),
    send,
    reset() {
      pending = create(null) as Record<string, PendingCall>;
    },
    deliver(call, ok, text) {
      const entry = pending[call];
      delete pending[call];
      if (entry === undefined) return;
      if (ok) entry.resolve(own.parse(text));
      else entry.reject(fail(text));
    },
  };
}

export function addFetch(own: Primordials, bridge: HostBridge): void {
  interface FetchResponse {
    status: number;
    headers: Record<string, string>;
    body: string;
    url: string;
    redirected: boolean;
  }
  const lower = String.prototype.toLowerCase;
  const { hasOwn } = Object;
  const header = (answer: FetchResponse, name: unknown): string | null => {
    const key = own.apply(lower, own.text(name), []) as string;
    return hasOwn(answer.headers, key) ? (answer.headers[key] ?? null) : null;
  };
  const respond = (answer: FetchResponse): object => ({
    ok: answer.status >= 200 && answer.status < 300,
    status: answer.status,
    url: answer.url,
    redirected: answer.redirected,
    headers: {
      get: (name: unknown) => header(answer, name),
      has: (name: unknown) => header(answer, name) !== null,
    },
    text: async () => answer.body,
    json: async () => own.parse(answer.body),
  });
  defineHidden(own, own.global, 'fetch', async (url: unknown, init?: Record<string, unknown>) => {
    const { method = 'GET', headers = {}, body } = init ?? {};
    const request = { url: own.text(url), method, headers, body: body === undefined ? null : own.text(body) };
    return respond((await bridge.request('fetch', request)) as FetchResponse);
  });
}

export function addFiles(own: Primordials, bridge: HostBridge): void {
  const readFile = async (path: unknown): Promise<unknown> => bridge.request('fs.readFile', { path: own.text(path) });
  defineHidden(own, own.global, 'fs', { readFile, promises: { readFile } });
}

interface CryptoParts {
  /** Whether the job declared `crypto`. */
  hashing: boolean;
  /** Whether the job declared `random`. */
  random: boolean;
}

export function addCrypto(own: Primordials, post: PostToRunner, { hashing, random }: CryptoParts): void {
  const noHash = buildUndeclaredUse('crypto');
  const noChance = buildUndeclaredUse('random');
  const build = hashing ? buildHasher(own, post) : undefined;
  defineHidden(own, own.global, 'crypto', {
    createHash: (name: unknown) => (build === undefined ? noHash('crypto.createHash()') : build.hash(name)),
    createHmac: (name: unknown, key: unknown) =>
      build === undefined ? noHash('crypto.createHmac()') : build.hmac(name, key),
    randomUUID: () => (random ? post('uuid', '', '') : noChance('crypto.randomUUID()')),
  });
}

interface Hasher {
  hash(algorithm: unknown): object;
  hmac(algorithm: unknown, key: unknown): object;
}

export function buildHasher(own: Primordials, post: PostToRunner): Hasher {
  const { isView } = ArrayBuffer;
  const { fromCharCode } = String;
  const part = (data: unknown, encoding: unknown): [string, string] => {
    if (typeof data === 'string') return [data, encoding === undefined ? 'utf8' : own.text(encoding)];
    if (!isView(data)) throw new TypeError('data must be text or a typed array');
    let text = '';
    const bytes = own.construct(Uint8Array, [data.buffer, data.byteOffset, data.byteLength]) as Uint8Array;
    for (let index = 0; index < bytes.length; index += 1) text += fromCharCode(bytes[index] ?? 0);
    return [text, 'latin1'];
  };
  const hasher = (algorithm: unknown, key?: [string, string]): object => {
    const parts: Record<number, unknown> & { length: number } = own.parse('[]') as [];
    const self = {
      update(data: unknown, encoding?: unknown) {
        own.define(parts, parts.length, { value: part(data, encoding), enumerable: true });
        return self;
      },
      digest(encoding: unknown = 'hex') {
        const answer = own.parse(
          post(
            'hash',
            own.stringify({ algorithm: own.text(algorithm), key, parts, encoding: own.text(encoding) }) ?? '',
            '',
          ),
        ) as { ok: boolean; digest?: string; message?: string };
        if (!answer.ok) throw new TypeError(answer.message);
        return answer.digest;
      },
    };
    return self;
  };
  return {
    hash: (algorithm) => hasher(algorithm),
    hmac: (algorithm, key) => hasher(algorithm, part(key, undefined)),
  };
}
