import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Client, InMemoryTransport } from '@modelcontextprotocol/client';
import type { ToolDescriptor } from '../../tools/contract.ts';
import type { ServedCall, ServedResult, ServedToClient } from './served.ts';
import { createServer } from './tool-server.ts';

const TOOL: ToolDescriptor = {
  name: 'send',
  description: 'Sends.',
  inputSchema: { type: 'object', properties: {} },
  outputSchema: { type: 'array' },
  category: 'communication',
  action: 'comms:external',
  sideEffects: true,
  locality: 'Brokered',
};

const FINE: ServedResult = { text: 'fine', isError: false };

/** A client of the SDK in this process, connected to a server with this one tool. */
async function withClient(
  call: (name: string, call: ServedCall) => Promise<ServedResult>,
  rest: Partial<ServedToClient>,
  work: (client: Client) => Promise<void>,
): Promise<void> {
  const tools = {
    list: async () => [TOOL],
    call: (name: string, _: object, context: ServedCall) => call(name, context),
  };
  const [near, far] = InMemoryTransport.createLinkedPair();
  const client = new Client({ name: 'test', version: '1' });
  await createServer({ tools, ...rest }).connect(far);
  await client.connect(near);
  try {
    await work(client);
  } finally {
    await client.close();
  }
}

describe('the limits of an MCP client', () => {
  it('the seventeenth call at the same time is refused, and one after an answer is not', async () => {
    const waiting: (() => void)[] = [];
    const call = (): Promise<ServedResult> => new Promise((resolve) => waiting.push(() => resolve(FINE)));
    await withClient(call, {}, async (client) => {
      const calls = Array.from({ length: 16 }, () => client.callTool({ name: 'send' }));
      const refused = await client.callTool({ name: 'send' });
      assert.deepEqual([refused.isError, refused._meta?.['temper.dev/code']], [true, 'TEMPER_RATE_LIMITED']);
      for (const answer of waiting.splice(0)) answer();
      await Promise.all(calls);
      const next = client.callTool({ name: 'send' });
      await client.ping();
      for (const answer of waiting) answer();
      assert.equal((await next).isError, false);
    });
  });

  it('a call without a progress token reports nothing, and one with a token at most a thousand times', async () => {
    const call = async (_: string, served: ServedCall): Promise<ServedResult> => {
      for (let index = 0; index < 1_500; index += 1) served.report('works\u0007');
      return FINE;
    };
    await withClient(call, {}, async (client) => {
      const seen: string[] = [];
      await client.callTool({ name: 'send' });
      await client.callTool({ name: 'send' }, { onprogress: ({ message }) => void seen.push(message ?? '') });
      assert.deepEqual([seen.length, seen[0]?.includes('\u0007')], [1_000, false]);
    });
  });

  it('a tool with side effects that reaches other systems says so, and an output that is no object has no schema', async () => {
    await withClient(
      async () => FINE,
      {},
      async (client) => {
        const [tool] = (await client.listTools()).tools;
        assert.deepEqual(tool?.annotations, { readOnlyHint: false, openWorldHint: true });
        assert.equal(tool?.outputSchema, undefined);
      },
    );
  });

  it('resources come in pages of a hundred, and a foreign cursor is refused', async () => {
    const resource = (index: number) => ({
      uri: `a:${index}`,
      name: 'n',
      title: 't',
      description: 'd',
      mimeType: 'text/plain',
    });
    const resources: ServedToClient['resources'] = {
      template: { uriTemplate: 'a:{b}', name: 'n', description: 'd', mimeType: 'text/plain' },
      list: async () => Array.from({ length: 101 }, (_, index) => resource(index)),
      read: async () => undefined,
    };
    await withClient(
      async () => FINE,
      { resources },
      async (client) => {
        const first = await client.request({ method: 'resources/list' });
        const second = await client.request({ method: 'resources/list', params: { cursor: first.nextCursor } });
        assert.deepEqual([first.resources.length, second.resources.length, second.nextCursor], [100, 1, undefined]);
        await assert.rejects(client.request({ method: 'resources/list', params: { cursor: '-1' } }), /cursor/);
      },
    );
  });
});
