import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';

export interface RecordedRequest {
  readonly method: string;
  /** With query. */
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: unknown;
}

/** A response, or a function that writes one. Undefined: 404. */
export type FakeResponse =
  | { status: number; body?: object | string }
  | ((response: ServerResponse) => Promise<void>)
  | undefined;

export interface FakeCluster extends AsyncDisposable {
  readonly kubeconfig: string;
  readonly requests: RecordedRequest[];
}

/** The paths of the API of users for namespace `team-a`, and of its token. */
export const GATEWAY_PROXY =
  '/api/v1/namespaces/temper-system/services/https:temper-gateway:8443/proxy/v1/users/namespaces/team-a';
export const USER_TOKEN = '/api/v1/namespaces/team-a/serviceaccounts/temper-users/token';

const TLS = new URL('../../../test/fixtures/tls/', import.meta.url);

/** An HTTPS server in place of the API server and the services behind its proxy, with a kubeconfig: context `prod`, namespace `team-a`. */
export async function fakeCluster(answer: (request: RecordedRequest) => FakeResponse): Promise<FakeCluster> {
  const [cert, key] = await Promise.all(
    ['certificate.pem', 'key.pem'].map((file) => readFile(new URL(file, TLS), 'utf8')),
  );
  const requests: RecordedRequest[] = [];
  const server = createServer({ cert, key }, (request, response) => {
    void serve(request, response, requests, answer).catch((error: unknown) => response.destroy(error as Error));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const folder = await mkdtemp(join(tmpdir(), 'temper-cli-'));
  const kubeconfig = join(folder, 'config');
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await writeFile(kubeconfig, JSON.stringify(configFor(url)), { mode: 0o600 });
  return {
    kubeconfig,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await rm(folder, { recursive: true });
    },
  };
}

/** A cluster with Temper in temper-system; `more` is asked first. */
export function installedCluster(more: (request: RecordedRequest) => FakeResponse): Promise<FakeCluster> {
  return fakeCluster((request) => {
    const found = more(request);
    if (found !== undefined) return found;
    if (request.path === USER_TOKEN) {
      const expirationTimestamp = new Date(Date.now() + 600_000).toISOString();
      return { status: 201, body: { status: { token: 'the-token', expirationTimestamp } } };
    }
    if (request.path.startsWith('/api/v1/services?')) {
      return servicesIn('temper-system');
    }
    return undefined;
  });
}

/** The Service of the gateway of a release. */
export function servicesIn(...namespaces: string[]): FakeResponse {
  const items = namespaces.flatMap((namespace) =>
    ['temper-gateway', 'temper-gateway-metrics'].map((name) => ({ metadata: { name, namespace } })),
  );
  return { status: 200, body: { kind: 'ServiceList', metadata: { resourceVersion: '1' }, items } };
}

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  seen: RecordedRequest[],
  answer: (request: RecordedRequest) => FakeResponse,
): Promise<void> {
  const hasBody = request.headers['content-type'] !== undefined;
  const { method = '', url: path = '', headers } = request;
  const entry = { method, path, headers, body: hasBody ? await json(request) : undefined };
  seen.push(entry);
  const reply = answer(entry) ?? { status: 404, body: { kind: 'Status', reason: 'NotFound', message: 'not found' } };
  if (typeof reply === 'function') return reply(response);
  const isText = typeof reply.body === 'string';
  response.writeHead(reply.status, { 'content-type': isText ? 'text/plain' : 'application/json' });
  response.end(isText ? reply.body : JSON.stringify(reply.body));
}

function configFor(server: string): object {
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'test', cluster: { server, 'insecure-skip-tls-verify': true } }],
    users: [{ name: 'alice', user: { token: 'the-credential-of-alice' } }],
    contexts: [{ name: 'prod', context: { cluster: 'test', user: 'alice', namespace: 'team-a' } }],
    'current-context': 'prod',
  };
}
