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
