import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { HTTP_TRICKS, trickTest } from '../../../../test/fixtures/mcp/tricks.ts';
import { callOptions } from '../../../../test/support/call-options.ts';
import { type Clock, systemClock } from '../../../lib/clock.ts';
import { isTemperError } from '../../../lib/errors.ts';
import { parseUntrustedJson } from '../../../lib/json.ts';
import { createToolServer } from '../../server/tool-server.ts';
import { acceptedToolsText, parseAcceptedTools } from '../tools/accepted-file.ts';
import type { ListedTool } from '../tools/listed-tool.ts';
import { httpChannel } from './http-channel.ts';
import { openServer } from './open-server.ts';
import { ServerConnection } from './server-connection.ts';

const server = createToolServer({
  list: async () => [
    {
      name: 'say',
      description: 'Says the text.',
      inputSchema: { type: 'object', properties: { text: { type: 'string' }, constructor: { type: 'string' } } },
      category: 'other',
      action: 'code:read',
      sideEffects: false,
      locality: 'Local',
    },
  ],
  call: async (_, { text }) => ({ text: JSON.stringify(text), isError: false }),
});

type Answer = (request: Request) => Promise<Response> | Response;

interface Answers {
  /** Gets the requests. */
  seen?: Request[];
  /** Gets the waits of the channel. */
  waits?: number[];
  /** Answers streams that are opened again. */
  reopened?: Answer;
  /** Answers all that is no call. */
  others?: Answer;
}

/** A connection to the server, whose calls `called` answers. */
async function connected(
  called: Answer,
  { seen = [], waits = [], reopened = server, others = server }: Answers = {},
): Promise<ServerConnection> {
  const fetch = async (target: string | URL, init: RequestInit): Promise<Response> => {
    const request = new Request(target, init);
    seen.push(request);
    if (request.headers.has('last-event-id')) return reopened(request);
    const isCall = request.method === 'POST' && (await request.clone().text()).includes('"tools/call"');
    return isCall ? called(request) : others(request);
  };
  const clock: Clock = { ...systemClock, sleep: async (milliseconds) => void waits.push(milliseconds) };
  const channel = httpChannel({ url: 'https://mcp.example.com/mcp' }, 'secret', { clock, fetch });
  return ServerConnection.open(
    { server: { name: 'h', isElsewhere: true }, channel, clock: systemClock },
    callOptions(),
  );
}

async function say(connection: ServerConnection): Promise<unknown> {
  const { tools } = await connection.tools(callOptions());
  return connection.call(tools[0] as ListedTool, { text: 'hello' }, callOptions());
}

const stream = (text: string): Response => new Response(text, { headers: { 'content-type': 'text/event-stream' } });
const json = (text: string): Response => new Response(text, { headers: { 'content-type': 'application/json' } });

async function failsWith(work: Promise<unknown>, reason: RegExp): Promise<void> {
  await assert.rejects(work, (error) => {
    assert.ok(isTemperError(error, 'TEMPER_MCP_SERVER_FAILED'), String(error));
    assert.match(error.message, reason);
    return true;
  });
}

/** The server answers a call so. */
function answers(answer: () => Response, reason: RegExp): () => Promise<void> {
  return async () => {
    await using connection = await connected(answer);
    await failsWith(say(connection), reason);
  };
}

/** The server ends its streams, and names the time after which the client is to ask again. */
function endsStreams(retry: number, waited: number, reopened: () => Response, reason: RegExp): () => Promise<void> {
  return async () => {
    const waits: number[] = [];
    await using connection = await connected(() => stream(`id: e\nretry: ${retry}\ndata: \n\n`), { waits, reopened });
    await failsWith(say(connection), reason);
    assert.equal(waits[0], waited);
    assert.ok(waits.length <= 70, `${waits.length} waits`);
    assert.equal(connection.isOpen, false);
  };
}

const ended = (): Response => stream('id: e\ndata: \n\n');
const TOO_OFTEN = /ends its streams too often/;

/** Each trick of the table. */
const ATTEMPTS: Record<keyof typeof HTTP_TRICKS, () => Promise<void>> = {
  deep: answers(() => json('['.repeat(100_000)), /more depth/),
  large: answers(() => json(' '.repeat(9 * 1_048_576)), /more than 8388608 bytes/),
  deepInStream: answers(() => stream(`data: ${'['.repeat(1_000)}\n\n`), /more depth/),
  severalLines: answers(() => stream('data: {"a":\ndata: 1}\n\n'), /several lines of data/),
  hiddenEnd: answers(() => stream('data: "\rdata: [[\n\n'), /carriage return/),
  endlessLines: answers(() => stream(': wait\n'.repeat(10_000)), /was not asked for/),
  endlessLine: answers(() => stream('x'.repeat(9 * 1_048_576)), /a line has more than/),
  error: answers(() => new Response('no', { status: 500 }), /the call failed/),
  endsStreams: endsStreams(0, 500, ended, TOO_OFTEN),
  endsStreamsLater: endsStreams(1e12, 300_000, ended, TOO_OFTEN),
  refusesStreams: endsStreams(700, 700, () => new Response('', { status: 500 }), /cannot be opened again/),
  async question() {
    await using connection = await connected(async (request) => {
      const { id } = (await request.json()) as { id: unknown };
      const inputRequests = { name: { method: 'elicitation/create', params: { mode: 'form', message: 'password?' } } };
      return json(JSON.stringify({ jsonrpc: '2.0', id, result: { resultType: 'input_required', inputRequests } }));
    });
    await assert.rejects(
      say(connection),
      (error) => isTemperError(error, 'TEMPER_TOOL_FAILED') && /asks for input or a sample/.test(error.message),
    );
    assert.equal(connection.isOpen, true);
  },
  async prototype() {
    await using connection = await connected(server);
    const { tools } = await connection.tools(callOptions());
    assert.deepEqual(tools[0]?.inputSchema['properties'], { text: { type: 'string' } });
    const stored = parseUntrustedJson(acceptedToolsText(new Map([['h', tools]])));
    assert.deepEqual(parseAcceptedTools('mcp-tools.json', stored).get('h'), tools);
  },
};

describe('an MCP server over HTTP', () => {
  it('its tools are listed and called, with the token and without following redirects', async () => {
    const seen: Request[] = [];
    await using connection = await connected(server, { seen });
    assert.deepEqual(((await say(connection)) as { content: unknown }).content, [{ type: 'text', text: '"hello"' }]);
    assert.ok(seen.length > 2);
    for (const { headers, redirect } of seen)
      assert.deepEqual([headers.get('authorization'), redirect], ['Bearer secret', 'error']);
  });

  it('a stream that the server ends before it answers is opened again where it ended, after the time that the server names', async () => {
    const [waits, seen]: [number[], Request[]] = [[], []];
    let id: unknown;
    await using connection = await connected(
      async (request) => {
        ({ id } = (await request.json()) as { id: unknown });
        return stream('id: e1\nretry: 700\ndata: \n\n');
      },
      {
        waits,
        seen,
        reopened: () =>
          stream(
            `id: e2\ndata: ${JSON.stringify({ jsonrpc: '2.0', id, result: { resultType: 'complete', content: [] } })}\n\n`,
          ),
      },
    );
    assert.deepEqual(((await say(connection)) as { content: unknown }).content, []);
    const again = seen.filter(({ headers }) => headers.has('last-event-id'));
    assert.deepEqual(
      again.map(({ method, headers }) => [method, headers.get('last-event-id'), headers.get('authorization')]),
      [['GET', 'e1', 'Bearer secret']],
    );
    assert.deepEqual(waits, [700]);
  });

  for (const [id, attempt] of Object.entries(ATTEMPTS))
    it(trickTest(HTTP_TRICKS[id as keyof typeof HTTP_TRICKS]), attempt);

  it('a session that the server forgot ends the connection, and one that is left ends at the server', async () => {
    const seen: Request[] = [];
    let answer: Answer = server;
    const named: Answer = async (request) => {
      if (request.method === 'DELETE') return new Response(null, { status: 204 });
      // Only older revisions have sessions.
      if (request.method === 'POST' && (await request.clone().text()).includes('"server/discover"'))
        return new Response('', { status: 400 });
      const { status, headers, body } = await answer(request);
      return new Response(body, { status, headers: { ...Object.fromEntries(headers), 'mcp-session-id': 'one' } });
    };
    {
      await using connection = await connected(named, { seen, others: named });
      await say(connection);
    }
    const left = seen.filter(({ method }) => method === 'DELETE').map(({ headers }) => headers.get('mcp-session-id'));
    assert.deepEqual(left, ['one']);
    await using connection = await connected(named, { seen, others: named });
    answer = () => new Response('', { status: 404 });
    await assert.rejects(say(connection), /the server has ended the session/);
    assert.equal(connection.isOpen, false);
  });

  it('a server whose token is not set is not asked', async () => {
    const configured = {
      name: 'h',
      category: 'mcp' as const,
      url: 'https://mcp.example.com/mcp',
      tokenEnvironment: 'A_TOKEN',
    };
    await assert.rejects(
      openServer(configured, { clock: systemClock, token: () => undefined, launcher: undefined }, callOptions()),
      (error) => isTemperError(error, 'TEMPER_MCP_SERVER_FAILED') && /A_TOKEN is not set/.test(error.message),
    );
  });
});
