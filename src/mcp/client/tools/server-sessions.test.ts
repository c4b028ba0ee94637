import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { before, describe, it } from 'node:test';
import { PROCESS_TRICKS, trickTest } from '../../../../test/fixtures/mcp/tricks.ts';
import { callOptions } from '../../../../test/support/call-options.ts';
import { systemClock } from '../../../lib/clock.ts';
import type { ErrorCode } from '../../../lib/error-codes.ts';
import { isTemperError } from '../../../lib/errors.ts';
import { type Json, type JsonObject, member } from '../../../lib/json.ts';
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
  const offered = all.map((tool) => ({ tool, descriptor: serverToolDescriptor(tool, server) }));
  const tools = serverTools(offered, {
    call: (tool, input, { session, op }) => sessions.call(session, tool, input, op),
    schemas: createSchemaCompiler(),
  });
  await work(async (name, input = {}, session = 's') => {
    const tool = tools.find(({ descriptor }) => descriptor.name === name) as Tool;
    return tool.call(input, { session, op: callOptions() } as CallContext);
  });
}

/** The server misbehaves within a call. */
function misbehaves(trick: string, reason: RegExp): () => Promise<void> {
  return () =>
    withTools(trick, async (call) => {
      await assert.rejects(call('h_misbehave'), fails('TEMPER_MCP_SERVER_FAILED', reason));
      assert.match(JSON.stringify(await call('h_echo', { text: 'again' })), /^"again/);
    });
}

/** What the process says about its attempt to leave its folder. */
function attempts(what: string, found: Json): () => Promise<void> {
  return () => withTools('', async (call) => assert.deepEqual(member(await call('h_attempt'), what), found));
}

/** The answers to the requests of the server, in their order. */
function asks(index: number): () => Promise<void> {
  return () =>
    withTools('', async (call) => {
      const said = await call('h_ask');
      assert.ok(typeof said === 'string');
      assert.equal(said.split(' ')[index], '-32601');
    });
}

/** The server, and then what a user would have accepted of it before. */
function changed(accepted: () => readonly ListedTool[], name: string, reason: RegExp): () => Promise<void> {
  return () =>
    withTools('', (call) => assert.rejects(call(name), fails('TEMPER_MCP_TOOL_CHANGED', reason)), accepted());
}

async function listsNot(name: string, trick = 'schema'): Promise<void> {
  const { tools, refused } = await listed(trick);
  assert.ok(refused.some(({ remoteName }) => remoteName === name));
  assert.ok(!tools.some(({ remoteName }) => remoteName === name));
}

describe('opening an MCP server', () => {
  it('a server of the newest revision may answer its first question later than an older one would', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'temper-slow-server-'));
    try {
      const program = join(FOLDER, 'slow-modern-server.ts');
      const started = join(folder, 'started');
      const server = { ...hostile(''), program, arguments: [started], read: [folder], write: [folder] };
      await using connection = await openServer(server, deps, callOptions());
      const { tools } = await connection.tools(callOptions());
      assert.deepEqual(
        tools.map(({ name }) => name),
        ['h_echo'],
      );
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
});

const OTHER_DIGEST = `sha256:${'0'.repeat(64)}` as const;

/** Each trick of the table. */
const ATTEMPTS: Record<keyof typeof PROCESS_TRICKS, () => Promise<void>> = {
  garbage: misbehaves('garbage', /not a message of JSON-RPC/),
  deep: misbehaves('deep', /more depth than the limit/),
  long: misbehaves('long', /a line has more than/),
  flood: misbehaves('flood', /was not asked for/),
  blank: misbehaves('blank', /was not asked for/),
  unasked: misbehaves('unasked', /was not asked for/),
  exit: misbehaves('exit', /exit code 3\); its standard error begins: the server starts/),
  stderr: misbehaves('stderr', /exit code 3\); its standard error begins: the server starts\\nx{500,1000}…$/),
  silent: () =>
    assert.rejects(
      openServer(hostile('silent'), deps, callOptions(300)),
      fails('TEMPER_MCP_SERVER_FAILED', /does not answer as an MCP server/),
    ),
  async never() {
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
  },
  environment: attempts('environment', ['HOME', 'PWD', 'TMPDIR']),
  file: attempts('file', 'ENOENT'),
  process: attempts('process', 'ERR_ACCESS_DENIED'),
  network: attempts('network', 'ERR_ACCESS_DENIED'),
  sampling: asks(0),
  elicitation: asks(1),
  roots: asks(2),
  rugPull: () =>
    withTools('', async (call) => {
      await call('h_echo');
      assert.equal(await call('h_change'), 'changed');
      await assert.rejects(call('h_echo'), fails('TEMPER_MCP_TOOL_CHANGED', /describes it differently now/));
      assert.deepEqual(await call('h_structured'), { n: 1 });
    }),
  rugPullBetween: changed(
    () => usual.tools.map((tool) => (tool.name === 'h_echo' ? { ...tool, digest: OTHER_DIGEST } : tool)),
    'h_echo',
    /h_echo/,
  ),
  gone: changed(() => usual.tools.map((tool) => ({ ...tool, name: 'h_gone' })), 'h_gone', /does not list it/),
  async shadow() {
    const { tools, refused } = await listed('shadow');
    assert.deepEqual(
      refused.map(({ remoteName }) => remoteName),
      ['echo', 'Echo'],
    );
    assert.ok(!tools.some(({ name }) => name === 'h_echo'));
  },
  pages: async () => assert.deepEqual((await listed('pages')).tools, []),
  many: async () => assert.equal((await listed('many')).tools.length, 200),
  deepSchema: () => listsNot('deep'),
  largeSchema: () => listsNot('large'),
  async pattern() {
    const [tool] = (await listed('schema')).tools;
    assert.equal(tool?.name, 'h_pattern');
    const check = createSchemaCompiler().check(tool.inputSchema);
    assert.equal(check({ a: `${'a'.repeat(10_000)}b` }).length, 1);
  },
  wrongOutput: () =>
    withTools('', (call) =>
      assert.rejects(call('h_structured', { text: 'wrong' }), fails('TEMPER_TOOL_OUTPUT_INVALID', /breaks its schema/)),
    ),
  media: () =>
    withTools('', async (call) =>
      assert.equal(
        await call('h_media'),
        'before\n[image: image/png]\n[audio: audio/wav]\n[resource: file:///a]\n[resource: file:///b]\nthe text of b',
      ),
    ),
  escapes: () =>
    withTools('', (call) => assert.rejects(call('h_fail'), fails('TEMPER_TOOL_FAILED', /it \\u\{1b\}\[31mfailed/))),
};

describe('the tools of an MCP server', () => {
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

  for (const [id, attempt] of Object.entries(ATTEMPTS))
    it(trickTest(PROCESS_TRICKS[id as keyof typeof PROCESS_TRICKS]), attempt);

  it('a result is the structured content, or the text', async () => {
    await withTools('', async (call) => {
      assert.match(JSON.stringify(await call('h_echo', { text: 'hello' })), /^"hello in process \d+"$/);
      assert.deepEqual(await call('h_structured'), { n: 1 });
    });
  });
});
