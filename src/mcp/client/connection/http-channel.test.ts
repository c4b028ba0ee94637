import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { callOptions } from '../../../../test/support/call-options.ts';
import { systemClock } from '../../../lib/clock.ts';
import { isTemperError } from '../../../lib/errors.ts';
import { createToolServer } from '../../server/tool-server.ts';
import type { ListedTool } from '../tools/listed-tool.ts';
import { httpChannel } from './http-channel.ts';
import { openServer } from './open-server.ts';
import { ServerConnection } from './server-connection.ts';

const server = createToolServer({
  list: async () => [
    {
      name: 'say',
      description: 'Says the text.',
      inputSchema: { type: 'object', properties: { text: { type: 'string' } } },
      category: 'other',
      action: 'code:read',
      sideEffects: false,
      locality: 'Local',
    },
  ],
  call: async (_, { text }) => ({ text: JSON.stringify(text), isError: false }),
});

type Answer = (request: Request) => Promise<Response> | Response;

/** A connection to the server, whose calls `called` answers. */
async function connected(called: Answer, seen: Request[] = []): Promise<ServerConnection> {
  const fetch = async (target: string | URL, init: RequestInit): Promise<Response> => {
    const request = new Request(target, init);
    seen.push(request);
    const isCall = request.method === 'POST' && (await request.clone().text()).includes('"tools/call"');
    return isCall ? called(request) : server(request);
  };
  const channel = httpChannel({ url: 'https://mcp.example.com/mcp' }, 'secret', { clock: systemClock, fetch });
  return ServerConnection.open({ server: 'h', channel, clock: systemClock }, callOptions());
}

async function say(connection: ServerConnection): Promise<unknown> {
  const { tools } = await connection.tools(callOptions());
  return connection.call(tools[0] as ListedTool, { text: 'hello' }, callOptions());
}

const stream = (text: string): Response => new Response(text, { headers: { 'content-type': 'text/event-stream' } });
const json = (text: string): Response => new Response(text, { headers: { 'content-type': 'application/json' } });

describe('an MCP server over HTTP', () => {
  it('its tools are listed and called, with the token and without following redirects', async () => {
    const seen: Request[] = [];
    await using connection = await connected(server, seen);
    assert.deepEqual(((await say(connection)) as { content: unknown }).content, [{ type: 'text', text: '"hello"' }]);
    assert.ok(seen.length > 2);
    for (const { headers, redirect } of seen)
      assert.deepEqual([headers.get('authorization'), redirect], ['Bearer secret', 'error']);
  });

  for (const [what, answer, reason] of [
    ['a deep value', () => json('['.repeat(100_000)), /more depth/],
    ['a large body', () => json(' '.repeat(9 * 1_048_576)), /more than 8388608 bytes/],
    ['a deep value in a stream', () => stream(`data: ${'['.repeat(1_000)}\n\n`), /more depth/],
    ['a value over several lines', () => stream('data: {"a":\ndata: 1}\n\n'), /several lines of data/],
    ['a hidden end of a line', () => stream('data: "\rdata: [[\n\n'), /carriage return/],
    ['endless lines', () => stream(': wait\n'.repeat(10_000)), /was not asked for/],
    ['an endless line', () => stream('x'.repeat(9 * 1_048_576)), /a line has more than/],
    ['an error', () => new Response('no', { status: 500 }), /the call failed/],
  ] as [string, () => Response, RegExp][]) {
    it(`a call that is answered with ${what} fails`, async () => {
      await using connection = await connected(answer);
      await assert.rejects(say(connection), (error) => {
        assert.ok(isTemperError(error, 'TEMPER_MCP_SERVER_FAILED'), String(error));
        assert.match(error.message, reason);
        return true;
      });
    });
  }

  it('a server whose token is not set is not asked', async () => {
    const configured = {
      name: 'h',
      category: 'mcp' as const,
      url: 'https://mcp.example.com/mcp',
      tokenEnvironment: 'A_TOKEN',
    };
    await assert.rejects(
      openServer(configured, { clock: systemClock, token: () => undefined }, callOptions()),
      (error) => isTemperError(error, 'TEMPER_MCP_SERVER_FAILED') && /A_TOKEN is not set/.test(error.message),
    );
  });
});
