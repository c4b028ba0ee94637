import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { describe, it } from 'node:test';
import { anEngine, anOp } from '../../src/engine/engine.testing.ts';
import { said, TestServer } from '../../src/gateway/capabilities/mcp/mcp-server.testing.ts';
import { systemClock } from '../../src/lib/clock.ts';
import type { Json, JsonObject } from '../../src/lib/json.ts';
import type { ConfiguredServer } from '../../src/mcp/client/read-servers.ts';
import { readListedTools } from '../../src/mcp/client/tools/listed-tool.ts';
import { serverToolDescriptor } from '../../src/mcp/client/tools/server-tools.ts';
import { mcpTools } from '../../src/standalone/team/mcp-tools.ts';

const noCode = () => Promise.reject(new Error('no code may run'));
const ELSEWHERE = 'https://mcp.example.com/mcp';

interface Setup {
  url: string;
  isElsewhere: boolean;
  annotations?: JsonObject;
  decision?: 'Approve' | 'Deny';
}

/** An agent under full autonomy whose sessions read the memory, and a tool `m_send` of an MCP server, with these hints. */
async function withServerTool(
  { url, isElsewhere, annotations = {}, decision = 'Deny' }: Setup,
  work: (engine: Awaited<ReturnType<typeof anEngine>>) => Promise<void>,
): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const server: ConfiguredServer = { name: 'm', category: 'other', url };
  const inputSchema = { type: 'object', properties: { text: { type: 'string' } } };
  const { tools } = readListedTools({ name: 'm', isElsewhere }, [{ name: 'send', inputSchema, annotations }]);
  const offered = tools.map((tool) => ({ tool, descriptor: serverToolDescriptor(tool, server) }));
  const servers = { servers: [{ server, tools, offered }], token: () => undefined, launcher: undefined };
  const host = new URL(ELSEWHERE).host;
  const engine = await anEngine(
    { workspace: tmpdir(), sandbox: { run: noCode, openSession: noCode } },
    {
      agent: { grants: { tools: ['*'], memory: { read: ['*'], write: ['*'] }, network: [host] } },
      level: 'standard',
      policy: {
        level: { initial: 'standard' },
        autonomy: 'Full',
        tools: { allow: ['m_send'] },
        egress: { allow: [host] },
      },
      decision,
      respond: () => 'read',
      agents: await mcpTools(servers, systemClock, stack),
    },
  );
  await work(engine);
}

const send = ({ call }: Awaited<ReturnType<typeof anEngine>>, session: string) =>
  call('m_send', { text: 'Ada' }, session);

/** Untrusted content and private data enter the session. */
async function readBoth({ engine, call }: Awaited<ReturnType<typeof anEngine>>, session: string): Promise<void> {
  await engine.handle({ session, text: 'send it', source: 'Agent', tainted: true }, anOp());
  assert.ok((await call('memory_get', { key: 'self.name' }, session)).ok);
}

describe('the tools of MCP servers in one process', () => {
  it('a call to a server elsewhere waits for an approver in a session with private data, whatever hints the tool has', async () => {
    for (const annotations of [{}, { readOnlyHint: true, openWorldHint: false }, { destructiveHint: false }]) {
      await withServerTool({ url: ELSEWHERE, isElsewhere: true, annotations }, async (engine) => {
        await readBoth(engine, 's-1');
        const result = await send(engine, 's-1');
        assert.equal(!result.ok && result.error.code, 'TEMPER_APPROVAL_DENIED', JSON.stringify(annotations));
        assert.match(engine.asked[0]?.reason ?? '', /may send to mcp\.example\.com.*: 14 bytes of arguments/);
      });
    }
  });

  it('a server on this machine may send further what it gets, unless its hint denies that', async () => {
    const received: Json[] = [];
    const test = new TestServer();
    test.tools = [{ name: 'send', inputSchema: { type: 'object', properties: { text: { type: 'string' } } } }];
    test.call = ({ input }) => {
      received.push(input['text'] as Json);
      return said('sent');
    };
    await using listening = await listen(test);
    const here = { url: listening.url, isElsewhere: false };
    await withServerTool(here, async (engine) => {
      await engine.call('memory_get', { key: 'self.name' }, 's-1');
      assert.ok((await send(engine, 's-1')).ok, 'nothing untrusted yet');
      await readBoth(engine, 's-2');
      assert.equal((await send(engine, 's-2')).ok, false);
      assert.deepEqual([engine.asked.length, received.length], [1, 1]);
    });
    test.tools = [{ ...test.tools[0], annotations: { readOnlyHint: true, openWorldHint: false } }];
    const closed = { ...here, annotations: { readOnlyHint: true, openWorldHint: false } };
    await withServerTool(closed, async (engine) => {
      await readBoth(engine, 's-1');
      const result = await send(engine, 's-1');
      assert.ok(result.ok, JSON.stringify(result));
      assert.deepEqual([engine.asked.length, received.length], [0, 2]);
    });
  });

  it('an approved call is sent', async () => {
    const test = new TestServer();
    test.tools = [{ name: 'send', inputSchema: { type: 'object', properties: { text: { type: 'string' } } } }];
    test.call = () => said('sent');
    await using listening = await listen(test);
    await withServerTool({ url: listening.url, isElsewhere: false, decision: 'Approve' }, async (engine) => {
      await readBoth(engine, 's-1');
      const result = await send(engine, 's-1');
      assert.ok(result.ok, JSON.stringify(result));
      assert.equal(engine.asked.length, 1);
    });
  });
});

async function listen(test: TestServer): Promise<AsyncDisposable & { url: string }> {
  const http = createServer(test.handler);
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  const { port } = http.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    async [Symbol.asyncDispose]() {
      http.closeAllConnections();
      http.close();
      await once(http, 'close');
    },
  };
}
