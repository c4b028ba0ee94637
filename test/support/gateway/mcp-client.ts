import { setTimeout as sleep } from 'node:timers/promises';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { fetchAt } from './fetch-at.ts';

const OVERLOADED = 503;
const MAX_ATTEMPTS = 60;
const RETRY_MS = 500;

/** The official client of the Model Context Protocol, connected to an agent of namespace team-a at a replica. */
export async function connectMcpClient(port: number, userToken: string, agent: string, query = ''): Promise<Client> {
  const url = new URL(`https://temper-gateway/v1/users/namespaces/team-a/agents/${agent}/mcp${query}`);
  const client = new Client({ name: 'test', version: '1' });
  const atReplica = repeatedWhenBusy(fetchAt(port, { 'temper-token': userToken }));
  await client.connect(new StreamableHTTPClientTransport(url, { fetch: atReplica }));
  return client;
}

/** Repeats requests that a busy gateway refuses before it reads them. */
function repeatedWhenBusy(send: typeof fetch): typeof fetch {
  return async (...request) => {
    for (let attempt = 1; ; attempt += 1) {
      const response = await send(...request);
      if (response.status !== OVERLOADED || attempt === MAX_ATTEMPTS) return response;
      await response.body?.cancel();
      await sleep(RETRY_MS);
    }
  };
}
