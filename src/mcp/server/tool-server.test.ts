import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import type { JsonObject } from '../../lib/json.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';
import type { ServedTools } from './served.ts';
import { createToolServer } from './tool-server.ts';

const READ: ToolDescriptor = {
  name: 'file_read',
  description: 'Reads a file.',
  inputSchema: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
  category: 'file_system',
  action: 'code:read',
  sideEffects: false,
  locality: 'Local',
};

/** A client of the SDK whose requests go to the handler. */
async function withClient(tools: ServedTools, work: (client: Client) => Promise<void>): Promise<void> {
  const handler = createToolServer(tools);
  const client = new Client({ name: 'test', version: '1' });
  const fetch = (input: string | URL, init?: RequestInit): Promise<Response> => handler(new Request(input, init));
  await client.connect(new StreamableHTTPClientTransport(new URL('http://temper.invalid/mcp'), { fetch }));
  try {
    await work(client);
  } finally {
    await client.close();
  }
}

describe('the MCP server of an agent', () => {
  it('a client of the SDK lists the tools and calls one', async () => {
    const calls: [string, JsonObject][] = [];
    const tools: ServedTools = {
      list: async () => [READ],
      async call(name, input) {
        calls.push([name, input]);
        return { text: 'hello', isError: false };
      },
    };
    await withClient(tools, async (client) => {
      const listed = await client.listTools();
      assert.deepEqual(
        listed.tools.map(({ name, inputSchema }) => [name, inputSchema]),
        [['file_read', READ.inputSchema]],
      );
      const result = await client.callTool({ name: 'file_read', arguments: { path: 'note.txt' } });
      assert.deepEqual([result.content, result.isError], [[{ type: 'text', text: 'hello' }], false]);
      assert.deepEqual(calls, [['file_read', { path: 'note.txt' }]]);
    });
  });

  it('a call that fails is a result with an error', async () => {
    const tools: ServedTools = {
      list: async () => [READ],
      call: async (name) => ({ text: `TEMPER_POLICY_DENIED: ${name}`, isError: true }),
    };
    await withClient(tools, async (client) => {
      const result = await client.callTool({ name: 'file_read', arguments: {} });
      assert.deepEqual(
        [result.content, result.isError],
        [[{ type: 'text', text: 'TEMPER_POLICY_DENIED: file_read' }], true],
      );
    });
  });

  it('a body beyond the limit and a body that is no request are refused', async () => {
    const handler = createToolServer({ list: async () => [], call: async () => ({ text: '', isError: false }) });
    const send = (body: string): Promise<Response> =>
      handler(
        new Request('http://temper.invalid/mcp', {
          method: 'POST',
          headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
          body,
        }),
      );
    assert.equal((await send('x'.repeat(5 * 1_024 * 1_024))).status, 413);
    assert.equal((await send('{"jsonrpc": "1"}')).status, 400);
  });
});
