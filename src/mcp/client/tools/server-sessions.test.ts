import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { before, describe, it } from 'node:test';
import { callOptions } from '../../../../test/support/call-options.ts';
import { systemClock } from '../../../lib/clock.ts';
import type { ErrorCode } from '../../../lib/error-codes.ts';
import { isTemperError } from '../../../lib/errors.ts';
import type { Json, JsonObject } from '../../../lib/json.ts';
import type { CallContext, Tool } from '../../../tools/contract.ts';
import { createSchemaCompiler } from '../../../tools/json-schema/compiler.ts';
import { openServer } from '../connection/open-server.ts';
import type { LocalServer } from '../read-servers.ts';
import type { ListedTool, ToolsOfServer } from './listed-tool.ts';
import { ServerSessions } from './server-sessions.ts';
import { serverToolDescriptor, serverTools } from './server-tools.ts';

const FOLDER = resolve(import.meta.dirname, '../../../../test/fixtures/mcp');
const deps = { clock: systemClock, token: () => undefined, launcher: undefined };

function hostile(trick: string): LocalServer {
  const program = join(FOLDER, 'hostile-server.ts');
  const environment: Record<string, string> = trick === '' ? {} : { TRICK: trick };
  return { name: 'h', category: 'mcp', folder: FOLDER, program, arguments: [], environment, read: [], write: [] };
}

async function listed(trick = ''): Promise<ToolsOfServer> {
  await using connection = await openServer(hostile(trick), deps, callOptions());
  return await connection.tools(callOptions());
}

function fails(code: ErrorCode, message: RegExp): (error: unknown) => boolean {
  return (error) => {
    assert.ok(isTemperError(error, code), String(error));
    assert.match(error.message, message);
    return true;
  };
}

let usual: ToolsOfServer;
before(async () => {
  usual = await listed();
});

/** The tools of the server as an agent has them, after a user accepted them as `accepted` or as the server usually lists them. */
async function withTools(
  trick: string,
  work: (call: (name: string, input?: JsonObject, session?: string) => Promise<Json>) => Promise<void>,
  accepted?: readonly ListedTool[],
): Promise<void> {
  const server = hostile(trick);
  const all = accepted ?? usual.tools;
  await using sessions = new ServerSessions(all, (op) => openServer(server, deps, op));
  const offered = all.map((tool) => ({ tool, descriptor: serverToolDescriptor(tool, 'mcp') }));
  const tools = serverTools(offered, {
    call: (tool, input, { session, op }) => sessions.call(session, tool, input, op),
    schemas: createSchemaCompiler(),
  });
  await work(async (name, input = {}, session = 's') => {
    const tool = tools.find(({ descriptor }) => descriptor.name === name) as Tool;
    return tool.call(input, { session, op: callOptions() } as CallContext);
  });
}

describe('the tools of an MCP server', () => {
  it('a result is the structured content or the text, and images, sounds and links are one line each', async () => {
    await withTools('', async (call) => {
      assert.match(JSON.stringify(await call('h_echo', { text: 'hello' })), /^"hello in process \d+"$/);
      assert.deepEqual(await call('h_structured'), { n: 1 });
      assert.equal(
        await call('h_media'),
        'before\n[image: image/png]\n[audio: audio/wav]\n[resource: file:///a]\n[resource: file:///b]\nthe text of b',
      );
      await assert.rejects(
        call('h_structured', { text: 'wrong' }),
        fails('TEMPER_TOOL_OUTPUT_INVALID', /breaks its schema/),
      );
      await assert.rejects(call('h_fail'), fails('TEMPER_TOOL_FAILED', /it \\u\{1b\}\[31mfailed/));
    });
  });

  it('the process has no environment of Temper, no network, no other process and no foreign file', async () => {
    await withTools('', async (call) => {
      const { environment, ...rest } = (await call('h_attempt')) as JsonObject;
      assert.deepEqual(environment, ['HOME', 'PWD', 'TMPDIR']);
      assert.deepEqual(rest, { file: 'ENOENT', process: 'ERR_ACCESS_DENIED', network: 'ERR_ACCESS_DENIED' });
    });
  });

  it('each session has a process of its own, and five unused ones become four', async () => {
    await withTools('', async (call) => {
      const of = (session: string) => call('h_echo', { text: '' }, session);
      const first = await of('1');
      assert.equal(await of('1'), first);
      const others = await Promise.all(['2', '3', '4', '5'].map(of));
      assert.equal(new Set([first, ...others]).size, 5);
      assert.deepEqual(await Promise.all(['2', '3', '4', '5'].map(of)), others);
      assert.notEqual(await of('1'), first);
    });
  });

  it('a tool whose description changes after it was accepted is not called again, and the others are', async () => {
    await withTools('', async (call) => {
      await call('h_echo');
      assert.equal(await call('h_change'), 'changed');
      await assert.rejects(call('h_echo'), fails('TEMPER_MCP_TOOL_CHANGED', /describes it differently now/));
      assert.deepEqual(await call('h_structured'), { n: 1 });
    });
    const { tools } = usual;
    const before = tools.map((tool) =>
      tool.name === 'h_echo' ? { ...tool, digest: `sha256:${'0'.repeat(64)}` as const } : tool,
    );
    await withTools('', (call) => assert.rejects(call('h_echo'), fails('TEMPER_MCP_TOOL_CHANGED', /h_echo/)), before);
    const gone = tools.map((tool) => ({ ...tool, name: 'h_gone' }));
    await withTools(
      '',
      (call) => assert.rejects(call('h_gone'), fails('TEMPER_MCP_TOOL_CHANGED', /does not list it/)),
      gone,
    );
  });

  it('a server that asks for samples, input or roots is refused', async () => {
    await withTools('', async (call) => assert.equal(await call('h_ask'), '-32601 -32601 -32601'));
  });

  it('names that become the same, endless pages and long lists are bounded', async () => {
    const shadowed = await listed('shadow');
    assert.deepEqual(
      shadowed.refused.map(({ remoteName }) => remoteName),
      ['echo', 'Echo'],
    );
    assert.ok(!shadowed.tools.some(({ name }) => name === 'h_echo'));
    assert.deepEqual((await listed('pages')).tools, []);
    assert.equal((await listed('many')).tools.length, 200);
    const { tools, refused } = await listed('schema');
    assert.deepEqual(
      [tools.map(({ name }) => name), refused.map(({ remoteName }) => remoteName)],
      [['h_pattern'], ['deep', 'large']],
    );
  });

  for (const [trick, reason] of [
    ['garbage', /no message of JSON-RPC/],
    ['deep', /more depth than the limit/],
    ['long', /a line has more than/],
    ['flood', /was not asked for/],
    ['blank', /was not asked for/],
    ['unasked', /was not asked for/],
    ['exit', /exit code 3\); its standard error begins: the server starts/],
    ['stderr', /exit code 3\); its standard error begins: the server starts\\nx{500,1000}…$/],
  ] as const) {
    it(`a server that misbehaves (${trick}) is ended, the call fails, and the next call starts it again`, async () => {
      await withTools(trick, async (call) => {
        await assert.rejects(call('h_misbehave'), fails('TEMPER_MCP_SERVER_FAILED', reason));
        assert.match(JSON.stringify(await call('h_echo', { text: 'again' })), /^"again/);
      });
    });
  }

  it('a server that never answers is ended when the time of its caller is over', async () => {
    await assert.rejects(
      openServer(hostile('silent'), deps, callOptions(300)),
      fails('TEMPER_MCP_SERVER_FAILED', /does not answer as an MCP server/),
    );
  });

  it('a call that is cancelled ends although the server never answers, and the process ends with its sessions', async () => {
    const { tools } = usual;
    const tool = tools.find(({ name }) => name === 'h_never') as ListedTool;
    const stop = new AbortController();
    const sessions = new ServerSessions(tools, (op) => openServer(hostile(''), deps, op));
    const echo = tools.find(({ name }) => name === 'h_echo') as ListedTool;
    const said = JSON.stringify(await sessions.call('s', echo, {}, callOptions()));
    const call = sessions.call('s', tool, {}, { ...callOptions(), signal: stop.signal });
    stop.abort(new Error('enough'));
    await assert.rejects(call);
    await sessions[Symbol.asyncDispose]();
    const [, pid] = /process (\d+)/.exec(said) ?? [];
    assert.ok(pid !== undefined && !existsSync(`/proc/${pid}`));
  });
});
