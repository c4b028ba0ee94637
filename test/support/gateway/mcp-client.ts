import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { fetchAt } from './fetch-at.ts';

/** The official client of the Model Context Protocol, connected to an agent of namespace team-a at a replica. */
export async function connectMcpClient(port: number, userToken: string, agent: string, query = ''): Promise<Client> {
  const url = new URL(`https://temper-gateway/v1/users/namespaces/team-a/agents/${agent}/mcp${query}`);
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(new StreamableHTTPClientTransport(url, { fetch: fetchAt(port, { 'temper-token': userToken }) }));
  return client;
}
