import type { ApiRequest, ApiResponse, ConnectionClient } from '../../connections/connection-client.ts';
import type { HostedGitConnection } from '../../connections/connection.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import { TemperError } from '../../lib/errors.ts';
import { type Json, member } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';

/** Requests to the REST API of one repository. */
export class RepositoryApi {
  readonly #client: ConnectionClient;
  readonly #connection: HostedGitConnection;
  readonly #root: string;

  /** `root` is the path of the repository below the URL of the API, encoded. */
  constructor(client: ConnectionClient, connection: HostedGitConnection, root: string) {
    this.#client = client;
    this.#connection = connection;
    this.#root = `${connection.git.apiUrl.replace(/\/$/, '')}/${root}`;
  }

  /** Throws TEMPER_CONNECTION_FAILED when it does not exist. */
  async get(path: string, op: CallOptions): Promise<Json> {
    return this.#read(await this.#send('GET', path, undefined, op), path);
  }

  /** Undefined when it does not exist. */
  async find(path: string, op: CallOptions): Promise<Json | undefined> {
    const response = await this.#send('GET', path, undefined, op);
    return response.status === 404 ? undefined : this.#read(response, path);
  }

  /** Undefined for one of the statuses with which the server says that the object exists. */
  async create(path: string, body: Json, existing: readonly number[], op: CallOptions): Promise<Json | undefined> {
    const response = await this.#send('POST', path, body, op);
    if (existing.includes(response.status)) return undefined;
    return this.#expect(response, [200, 201], `creating ${path}`);
  }

  async update(path: string, body: Json, op: CallOptions): Promise<Json> {
    return this.#expect(await this.#send('PATCH', path, body, op), [200], `changing ${path}`);
  }

  #send(method: ApiRequest['method'], path: string, body: Json | undefined, op: CallOptions): Promise<ApiResponse> {
    return this.#client({ method, url: `${this.#root}${path}`, ...(body === undefined ? {} : { body }) }, op);
  }

  /** A page for users, such as the login page of a proxy, is no answer: it would look like an empty repository. */
  #read(response: ApiResponse, path: string): Json {
    const body = this.#expect(response, [200], `reading ${path}`);
    if (typeof body === 'object' && body !== null) return body;
    throw new TemperError(
      'TEMPER_CONNECTION_FAILED',
      `connection "${this.#connection.name}": the server answered without JSON; check git.apiUrl`,
      { retry: 'backoff' },
    );
  }

  #expect({ status, body, message }: ApiResponse, expected: readonly number[], doing: string): Json {
    if (expected.includes(status)) return body;
    const said = message();
    const next = status === 404 ? '; check git.repository, branch and path, and whether the token may read them' : '';
    throw new TemperError(
      'TEMPER_CONNECTION_FAILED',
      `connection "${this.#connection.name}": ${printable(doing, 200)} of ${this.#connection.git.repository}: the server answered ${status}${said === '' ? '' : ` (${printable(said, 200)})`}${next}`,
      { retry: 'backoff' },
    );
  }
}

/** A path with each segment encoded. */
export function encodedPath(path: string): string {
  return path.split('/').map(encodeURIComponent).join('/');
}

export function listOf(value: Json | undefined): Json[] {
  return Array.isArray(value) ? value : [];
}

export function numberAt(value: Json | undefined, key: string): number {
  const found = member(value, key);
  return typeof found === 'number' ? found : 0;
}
