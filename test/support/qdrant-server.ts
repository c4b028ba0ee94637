import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

interface Point {
  id: string;
  vector: number[];
  payload: { namespace: string };
}

interface Query {
  query: number[];
  limit: number;
  filter: { must: [{ has_id: string[] }, { key: string; match: { value: string } }] };
}

/** Answers the requests of Qdrant's REST API that Temper makes, as Qdrant 1.19 does. */
export interface QdrantServer extends AsyncDisposable {
  readonly url: string;
  readonly collections: Map<string, { size: number; points: Map<string, Point> }>;
  readonly requests: string[];
  /** The key that requests need. */
  key: string | undefined;
  /** Every request fails with this status; `hang`: none is answered. */
  failure: number | 'hang' | undefined;
}

export async function startQdrantServer(): Promise<QdrantServer> {
  const server = createServer((request, response) => void answer(request, response, state));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const state: QdrantServer = {
    url: `http://127.0.0.1:${port}`,
    collections: new Map(),
    requests: [],
    key: undefined,
    failure: undefined,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return state;
}

async function answer(request: IncomingMessage, response: ServerResponse, state: QdrantServer): Promise<void> {
  const { method = '', url = '' } = request;
  const [path = ''] = url.split('?');
  state.requests.push(`${method} ${path}`);
  const body = method === 'GET' ? undefined : await json(request);
  if (state.failure === 'hang') return;
  const refused = state.key !== undefined && request.headers['api-key'] !== state.key ? 401 : state.failure;
  const [status, result] = refused === undefined ? resultOf(method, path, body, state) : [refused, undefined];
  const text = status === 200 ? { result, status: 'ok', time: 0 } : { status: { error: 'refused' }, time: 0 };
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(text));
}

function resultOf(method: string, path: string, body: unknown, { collections }: QdrantServer): [number, unknown] {
  const [, , name = '', ...rest] = path.split('/');
  const collection = collections.get(name);
  const action = `${method} ${rest.join('/')}`;
  if (action === 'GET exists') return [200, { exists: collection !== undefined }];
  if (action === 'PUT ') {
    if (collection !== undefined) return [409, undefined];
    collections.set(name, { size: (body as { vectors: { size: number } }).vectors.size, points: new Map() });
    return [200, true];
  }
  if (collection === undefined) return [404, undefined];
  const { points, size } = collection;
  if (action === 'PUT points') {
    const added = (body as { points: Point[] }).points;
    if (added.some(({ vector }) => vector.length !== size)) return [400, undefined];
    for (const point of added) points.set(point.id, point);
    return [200, { operation_id: 1, status: 'completed' }];
  }
  if (action === 'POST points') {
    const { ids } = body as { ids: string[] };
    return [200, ids.filter((id) => points.has(id)).map((id) => ({ id }))];
  }
  if (action === 'POST points/query') return [200, { points: nearest(body as Query, [...points.values()]) }];
  return [404, undefined];
}

function nearest({ query, limit, filter }: Query, points: readonly Point[]): { id: string; score: number }[] {
  const [{ has_id: ids }, { match }] = filter.must;
  const wanted = new Set(ids);
  const product = (vector: readonly number[]): number =>
    vector.reduce((sum, value, at) => sum + value * (query[at] ?? 0), 0);
  return points
    .filter(({ id, payload }) => wanted.has(id) && payload.namespace === match.value)
    .map(({ id, vector }) => ({ id, score: product(vector) }))
    .sort((a, b) => b.score - a.score)
    .slice(0, limit);
}
