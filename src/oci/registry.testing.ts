import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { sha256 } from '../lib/canonical.ts';
import { systemClock } from '../lib/clock.ts';
import type { JsonObject } from '../lib/json.ts';
import { INDEX_TYPE } from './manifest.ts';
import { parseReference } from './reference.ts';
import { createRegistryClient, type RegistryClientDeps } from './registry-client.ts';

/** The repository of the tests. */
export const REPOSITORY = 'team/double';
const BASE = `/v2/${REPOSITORY}/`;

/** A registry in memory on loopback, which does what the tests tell it. */
export interface FakeRegistry extends AsyncDisposable {
  readonly port: number;
  readonly blobs: Map<string, string>;
  /** By tag and by digest. */
  readonly manifests: Map<string, string>;
  /** `METHOD PATH` of all requests, and their Authorization headers. */
  readonly requests: { line: string; authorization: string | undefined }[];
  /** Answers a request in place of the registry; returns false to let the registry answer. */
  hostile: (request: IncomingMessage, response: ServerResponse) => boolean;
  /** Does the registry keep the list of referrers? */
  keepsReferrers: boolean;
}

export async function startFakeRegistry(): Promise<FakeRegistry> {
  const registry = {
    blobs: new Map<string, string>(),
    manifests: new Map<string, string>(),
    requests: [] as FakeRegistry['requests'],
    hostile: (): boolean => false,
    keepsReferrers: true,
  } as Omit<FakeRegistry, 'port' | typeof Symbol.asyncDispose>;
  const server = createServer((request, response) => {
    registry.requests.push({ line: `${request.method} ${request.url}`, authorization: request.headers.authorization });
    if (registry.hostile(request, response)) return;
    void bodyOf(request).then((body) => answer(registry, request, body, response));
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  return Object.assign(registry, {
    port,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  });
}

/** A reference into the registry and a client for it. */
export function clientFor(registry: FakeRegistry, changes: Partial<RegistryClientDeps> = {}, name = ':v1') {
  const reference = parseReference(`oci://localhost:${registry.port}/${REPOSITORY}${name}`);
  const deps: RegistryClientDeps = { clock: systemClock, credentials: async () => undefined, ...changes };
  return { reference, client: createRegistryClient(reference, 'pull,push', deps) };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let body = '';
  for await (const chunk of request.setEncoding('utf8')) body += String(chunk);
  return body;
}

type Stored = Pick<FakeRegistry, 'blobs' | 'manifests' | 'keepsReferrers'>;

function answer(registry: Stored, request: IncomingMessage, body: string, response: ServerResponse): void {
  const url = new URL(request.url ?? '', 'http://localhost');
  const path = url.pathname.slice(BASE.length);
  const [kind, name = ''] = path.split('/');
  if (request.method === 'POST') response.writeHead(202, { location: `${BASE}blobs/uploads/1?state=a` }).end();
  else if (path.startsWith('blobs/uploads/')) {
    registry.blobs.set(url.searchParams.get('digest') ?? '', body);
    response.writeHead(201).end();
  } else if (request.method === 'PUT') putManifest(registry, name, body, response);
  else if (kind === 'referrers') listReferrers(registry, name, response);
  else {
    const found = (kind === 'blobs' ? registry.blobs : registry.manifests).get(name);
    response.writeHead(found === undefined ? 404 : 200).end(found);
  }
}

function putManifest(
  { manifests, keepsReferrers }: Stored,
  name: string,
  body: string,
  response: ServerResponse,
): void {
  manifests.set(name, body).set(sha256(body), body);
  const { subject } = JSON.parse(body) as { subject?: { digest: string } };
  const isProcessed = keepsReferrers && subject !== undefined;
  response.writeHead(201, {
    'docker-content-digest': sha256(body),
    ...(isProcessed ? { 'oci-subject-processed': subject.digest } : {}),
  });
  response.end();
}

function listReferrers({ manifests, keepsReferrers }: Stored, subject: string, response: ServerResponse): void {
  if (!keepsReferrers) return void response.writeHead(404).end();
  const all = new Map([...manifests.values()].map((text) => [sha256(text), text]));
  const found = [...all].flatMap(([digest, text]) => {
    const {
      mediaType,
      artifactType,
      subject: about,
    } = JSON.parse(text) as JsonObject & { subject?: { digest: string } };
    return about?.digest === subject ? [{ mediaType, artifactType, digest, size: Buffer.byteLength(text) }] : [];
  });
  response.end(JSON.stringify({ schemaVersion: 2, mediaType: INDEX_TYPE, manifests: found }));
}
