import assert from 'node:assert/strict';
import { it } from 'node:test';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { fetchAt } from '../../../support/gateway/fetch-at.ts';
import { type MessageClient, parsed } from '../../../support/gateway/message-client.ts';

/** An agent for clients of the Model Context Protocol over HTTP. */
export function mcpTests(open: () => MessageClient): void {
  it('a client of the MCP SDK asks an agent, and waits for the reply with its ticket at the other replica', async () => {
    const messages = open();
    const { one, other, userToken } = messages;
    const agent = await messages.createReadyAgent('asked-over-mcp');
    const url = new URL('https://temper-gateway/v1/users/namespaces/team-a/agents/asked-over-mcp/mcp');
    const connect = async (port: number): Promise<Client> => {
      const client = new Client({ name: 'test', version: '1' });
      await client.connect(
        new StreamableHTTPClientTransport(url, { fetch: fetchAt(port, { 'temper-token': userToken }) }),
      );
      return client;
    };
    const first = await connect(one.port);
    try {
      assert.deepEqual(
        (await first.listTools()).tools.map(({ name }) => name),
        ['ask_agent'],
      );
      const input = { text: 'How many?', session: 'mcp-1' };
      const asking = first.callTool({ name: 'ask_agent', arguments: input }, { timeout: 60_000 });
      const { deliveryToken, message } = await messages.next(agent);
      assert.deepEqual([message.text, message.source, message.session], ['How many?', 'User', 'mcp-1']);
      const ack = { deliveryToken, action: 'ack', reply: 'Three.', finishReason: 'complete' };
      parsed(await messages.postDelivery(agent, ack), 204);
      const answer = { reply: 'Three.', finishReason: 'complete', session: 'mcp-1' };
      assert.deepEqual((await asking).structuredContent, answer);
      const second = await connect(other.port);
      const ticket = { session: 'mcp-1', ticket: `${message.id}.0.0` };
      assert.deepEqual((await second.callTool({ name: 'ask_agent', arguments: ticket })).structuredContent, answer);
      await second.close();
    } finally {
      await first.close();
    }
  });
}
