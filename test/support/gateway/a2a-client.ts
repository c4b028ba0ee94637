import type { Client } from '@a2a-js/sdk/client';
import { a2aClientAt } from '../a2a.ts';
import { fetchAt } from './fetch-at.ts';
import type { GatewayReplica, HttpResponse } from './gateway-fixture.ts';

/** The path of an agent at a gateway. */
export const a2aPath = (namespace: string, agent: string): string => `/v1/a2a/namespaces/${namespace}/agents/${agent}`;

/** The client of the SDK, for one agent. */
export function a2aClient(
  { port }: Pick<GatewayReplica, 'port'>,
  { namespace = 'team-a', agent, token }: { namespace?: string; agent: string; token: string },
): Promise<Client> {
  const fetchImpl = fetchAt(port, { authorization: `Bearer ${token}` });
  return a2aClientAt(`https://127.0.0.1:${port}${a2aPath(namespace, agent)}`, fetchImpl);
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
