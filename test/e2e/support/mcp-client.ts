import { request } from 'node:https';
import { Readable } from 'node:stream';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { PORTS, RELEASE_OBJECTS } from '../../../src/api/cluster.ts';
import { USER_TOKEN_HEADER, USERS_PATH } from '../../../src/gateway-api/user-api.ts';
import { openCluster } from '../../../src/cli/cluster/cluster.ts';
import type { ClusterAccess } from '../../../src/kube/client/cluster-access.ts';
import { RELEASE_NAMESPACE } from './installed-cluster.ts';
import { quietIo } from './session-lines.ts';

interface McpAgent {
  readonly kubeconfig: string;
  readonly namespace: string;
  readonly agent: string;
  /** Of the ServiceAccount for users, for the gateway. */
  readonly token: string;
}

const TIMEOUT_MS = 120_000;

/** Runs `work` as a program outside the cluster with the client of the SDK, connected to the agent at the gateway through the API server. */
export async function asMcpClient(
  { kubeconfig, namespace, agent, token }: McpAgent,
  work: (client: Client) => Promise<void>,
): Promise<void> {
  await using cluster = await openCluster({ kubeconfig, namespace }, quietIo(AbortSignal.timeout(TIMEOUT_MS)));
  const service = `https:${RELEASE_OBJECTS.gateway}:${PORTS.gateway}`;
  const proxy = `/api/v1/namespaces/${RELEASE_NAMESPACE}/services/${service}/proxy`;
  const url = new URL(`${proxy}${USERS_PATH}/${namespace}/agents/${agent}/mcp`, cluster.access.server);
  const transport = new StreamableHTTPClientTransport(url, { fetch: fetchAs(cluster.access, token) });
  const client = new Client({ name: 'test', version: '1' });
  try {
    await client.connect(transport);
    await work(client);
  } finally {
    await client.close();
  }
}

/** A `fetch` with the certificate of a user of the cluster and the token for the gateway, which reads answers as they arrive. */
function fetchAs(access: ClusterAccess, token: string): typeof fetch {
  return async (input, init = {}) => {
    const own = await access.credentials();
    const url = new URL(input instanceof Request ? input.url : input);
    const given = Object.fromEntries(new Headers(init.headers ?? {}));
    const { promise, resolve, reject } = Promise.withResolvers<Response>();
    const headers = { ...given, ...own.headers, [USER_TOKEN_HEADER]: token };
    const signal = init.signal ?? undefined;
    const sent = request(url, { ...own.tls, method: init.method ?? 'GET', headers, ...(signal && { signal }) });
    sent.once('response', (response) => {
      const status = response.statusCode ?? 0;
      const type = response.headers['content-type'] ?? '';
      const body = [202, 204].includes(status) ? null : (Readable.toWeb(response) as ReadableStream<Uint8Array>);
      resolve(new Response(body, { status, headers: { 'content-type': type } }));
    });
    sent.once('error', reject);
    sent.end(init.body ?? undefined);
    return promise;
  };
}
