import { Agent, request } from 'node:https';
import { Readable } from 'node:stream';
import {
  type Client,
  ClientFactory,
  ClientFactoryOptions,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
} from '@a2a-js/sdk/client';
import type { GatewayReplica, HttpResponse } from './gateway-fixture.ts';

/** The path of an agent at a gateway. */
export const a2aPath = (namespace: string, agent: string): string => `/v1/a2a/namespaces/${namespace}/agents/${agent}`;

/** A `fetch` that sends the token to one port, whatever host the card names, and reads answers as they arrive. */
function fetchAt(port: number, token: string): typeof fetch {
  return async (input, init = {}) => {
    const { pathname, search } = new URL(input instanceof Request ? input.url : input);
    const headers = { ...Object.fromEntries(new Headers(init.headers ?? {})), authorization: `Bearer ${token}` };
    const agent = new Agent({ rejectUnauthorized: false });
    const { promise, resolve, reject } = Promise.withResolvers<Response>();
    const options = {
      host: '127.0.0.1',
      port,
      path: `${pathname}${search}`,
      method: init.method ?? 'GET',
      headers,
      agent,
    };
    const sent = request(options, (response) => {
      const body = Readable.toWeb(response) as unknown as ReadableStream<Uint8Array>;
      const type = response.headers['content-type'] ?? '';
      resolve(new Response(body, { status: response.statusCode ?? 0, headers: { 'content-type': type } }));
    });
    sent.on('error', reject);
    sent.on('close', () => agent.destroy());
    sent.end(init.body ?? undefined);
    return promise;
  };
}

/** The client of the SDK, for one agent. It reads the card first, as every client does. */
export function a2aClient(
  { port }: Pick<GatewayReplica, 'port'>,
  { namespace = 'team-a', agent, token }: { namespace?: string; agent: string; token: string },
): Promise<Client> {
  const fetchImpl = fetchAt(port, token);
  const options = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, {
    transports: [new JsonRpcTransportFactory({ fetchImpl })],
    cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
  });
  const base = `https://127.0.0.1:${port}${a2aPath(namespace, agent)}/`;
  return new ClientFactory(options).createFromUrl(base, '.well-known/agent-card.json');
}

/** One JSON-RPC request as text on the wire; without a version as clients of A2A 0.3 send it. */
export function rpc(
  gateway: GatewayReplica,
  {
    namespace = 'team-a',
    agent,
    token,
    version,
  }: { namespace?: string; agent: string; token: string; version?: string },
  method: string,
  params: unknown,
): Promise<HttpResponse> {
  const headers: Record<string, string> = version === undefined ? {} : { 'a2a-version': version };
  const body = { jsonrpc: '2.0', id: 1, method, params };
  return gateway.call('POST', a2aPath(namespace, agent), { token, headers, body });
}
