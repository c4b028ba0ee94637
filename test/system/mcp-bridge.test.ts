import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, readdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { systemClock } from '../../src/lib/clock.ts';
import { serveBridge } from '../../src/mcp/bridge/serve.ts';
import { buildLauncher } from '../support/launcher.ts';
import { poll } from '../support/poll.ts';
import { ROOT, temporaryFolder } from './command.ts';

const CAN = process.platform === 'linux' && (process.arch === 'x64' || process.arch === 'arm64');
const FOLDER = join(ROOT, 'test/fixtures/mcp');
const SESSIONS = 3;

interface Answered {
  status: number;
  text: string;
}

describe('the bridge to an MCP server of the platform', {
  skip: CAN ? false : 'needs Linux on x86_64 or aarch64',
  timeout: 300_000,
}, () => {
  const stop = new AbortController();
  const warnings: object[] = [];
  let folder: Awaited<ReturnType<typeof temporaryFolder>>;
  let homes = '';
  let url = '';
  let running: Promise<void>;
  let ids = 0;

  before(async () => {
    folder = await temporaryFolder();
    homes = join(await realpath(folder.path), 'homes');
    for (let number = 0; number < SESSIONS; number += 1)
      await mkdir(join(homes, `${number}/left`), { recursive: true });
    const ready = Promise.withResolvers<number>();
    running = serveBridge({
      listen: { host: '127.0.0.1', port: 0 },
      program: {
        command: 'python3',
        arguments: [join(FOLDER, 'line_server.py')],
        environment: { NOTES: '$(HOME)/notes' },
        folder: FOLDER,
      },
      sessions: SESSIONS,
      memoryMebibytes: 64,
      homes,
      launcher: await buildLauncher(folder.path),
      clock: systemClock,
      log: { info: () => undefined, warn: (fields) => void warnings.push(fields) },
      signal: stop.signal,
      listening: ready.resolve,
    });
    running.catch(ready.reject);
    url = `http://127.0.0.1:${await ready.promise}/mcp`;
  });
  after(async () => {
    stop.abort();
    await running;
    await folder[Symbol.asyncDispose]();
  });

  const post = (body: unknown, headers: Record<string, string> = {}, signal?: AbortSignal): Promise<Response> =>
    fetch(url, {
      method: 'POST',
      body: typeof body === 'string' ? body : JSON.stringify(body),
      headers,
      ...(signal === undefined ? {} : { signal }),
    });
  const message = (method: string, params: object = {}): object => ({
    jsonrpc: '2.0',
    id: (ids += 1),
    method,
    params,
  });
  const open = async (namespace = 'team-a', key = ''): Promise<{ status: number; id: string }> => {
    const owner = { 'temper-namespace': namespace, ...(key === '' ? {} : { 'temper-session': key }) };
    const answered = await post(message('initialize'), owner);
    await answered.text();
    return { status: answered.status, id: answered.headers.get('mcp-session-id') ?? '' };
  };
  const attempt = async (id: string, trick: string, text = '', signal?: AbortSignal): Promise<Answered> => {
    const call = message('tools/call', { name: 'do', arguments: { trick, text } });
    const answered = await post(call, { 'mcp-session-id': id }, signal);
    return { status: answered.status, text: await answered.text() };
  };
  const close = async (...sessions: { id: string }[]): Promise<void> => {
    for (const { id } of sessions) await fetch(url, { method: 'DELETE', headers: { 'mcp-session-id': id } });
  };
  const processes = async (pattern: string): Promise<number> => {
    const { stdout } = await promisify(execFile)('ps', ['-eo', 'args']);
    return stdout.split('\n').filter((line) => line.includes(pattern)).length;
  };

  it('each session has a process and a home of its own, and reaches no other one', async () => {
    const [one, other] = [await open(), await open()];
    await attempt(one.id, 'write', 'secret');
    assert.match((await attempt(one.id, 'read')).text, /secret/);
    assert.match((await attempt(other.id, 'read')).text, /refused: No such file/);
    const home = /in (\S+) by/.exec((await attempt(one.id, 'say')).text)?.[1] ?? '';
    assert.ok(home.startsWith(`${homes}/`), home);
    assert.match((await attempt(other.id, 'read', `${home}/note`)).text, /refused: Permission denied/);
    assert.match((await attempt(other.id, 'list', homes)).text, /refused: Permission denied/);
    assert.match((await attempt(other.id, 'list', '/etc')).text, /refused: Permission denied/);
    assert.match((await attempt(other.id, 'network')).text, /refused: Operation not permitted/);
    assert.doesNotMatch((await attempt(other.id, 'environment')).text, /XDG|TOKEN|NODE|npm/);
    await close(one, other);
    for (const number of await readdir(homes)) assert.deepEqual(await readdir(join(homes, number)), []);
  });

  for (const trick of ['line', 'flood', 'noise', 'crash', 'memory', 'fork'])
    it(`a server that attempts "${trick}" loses its session, and no other one`, async () => {
      const [hostile, other] = [await open(), await open()];
      const lost = await attempt(hostile.id, trick);
      assert.equal(lost.status, 404, lost.text);
      assert.match(lost.text, /the session has ended/);
      assert.doesNotMatch(lost.text, /\\u001b/);
      assert.equal((await attempt(hostile.id, 'say')).status, 404);
      assert.ok(warnings.length > 0);
      assert.match((await attempt(other.id, 'say')).text, /say in/);
      await close(other);
    });

  it('the standard error of a server is in the error of its call, and in no line of the log', async () => {
    const before = warnings.length;
    const { id } = await open();
    const crashed = await attempt(id, 'crash');
    assert.match(crashed.text, /the process exited .*; its standard error begins: it .* crashes/);
    assert.equal((await attempt(id, 'say')).status, 404);
    assert.match(JSON.stringify(warnings.slice(before)), /the process exited/);
    assert.doesNotMatch(JSON.stringify(warnings), /standard error|crashes/);
  });

  it('nothing that a server started outlives its session', async () => {
    const hostile = await open();
    await attempt(hostile.id, 'detach');
    assert.equal(await processes('sleep 613'), 1);
    await close(hostile);
    await poll('the end of all processes', async () => (await processes('sleep 613')) === 0);
    await poll('the end of all servers', async () => (await processes('line_server.py')) === 0);
  });

  it('a call that its client leaves, and that the server never answers, holds no place', async () => {
    const sessions = [await open(), await open(), await open()];
    const left = new AbortController();
    const silent = attempt(sessions[0]?.id ?? '', 'silent', '', left.signal);
    left.abort();
    await assert.rejects(silent);
    const next = await poll('a place', async () => {
      const opened = await open();
      return opened.status === 200 ? opened : false;
    });
    await close(next, ...sessions);
  });

  it('a full bridge displaces an unused session of the namespace with most of them, and no session in use', async () => {
    const mine = await open('team-b');
    const [first, second] = [await open('team-a'), await open('team-a')];
    const next = await open('team-b');
    assert.equal(next.status, 200);
    assert.equal((await attempt(first.id, 'say')).status, 404);
    for (const { id } of [mine, second, next]) assert.equal((await attempt(id, 'say')).status, 200);
    const left = new AbortController();
    const silent = [mine, second, next].map(({ id }) => attempt(id, 'silent', '', left.signal).catch(() => undefined));
    await poll('three sessions in use', async () => (await open()).status === 503);
    left.abort();
    await Promise.all(silent);
    await close(mine, second, next);
  });

  it('what the server sends unasked goes to the one stream of its session', async () => {
    const session = await open();
    const headers = { 'mcp-session-id': session.id };
    const leave = new AbortController();
    const stream = await fetch(url, { headers, signal: leave.signal });
    assert.equal((await fetch(url, { headers })).status, 409);
    await attempt(session.id, 'changed');
    const reader = stream.body?.getReader();
    const { value } = (await reader?.read()) ?? {};
    assert.match(Buffer.from(value ?? []).toString(), /^event: message\ndata: .*list_changed/);
    leave.abort();
    await close(session);
  });

  describe('sessions of one session of an agent', () => {
    const notify = async (id: string, method: string, params = {}): Promise<void> => {
      const answered = await post({ jsonrpc: '2.0', method, params }, { 'mcp-session-id': id });
      assert.equal(answered.status, 202);
    };
    const received = async (id: string): Promise<[method: string, id: number, requestId: unknown][]> => {
      const { text } = await attempt(id, 'received');
      const body = JSON.parse(text) as { result: { content: [{ text: string }] } };
      return JSON.parse(body.result.content[0].text) as [string, number, unknown][];
    };

    it('share a process, which is initialized once, and get their own answers', async () => {
      const [one, two] = await Promise.all([open('team-a', 'k'), open('team-a', 'k')]);
      const other = await open('team-b', 'k');
      for (const { id } of [one, two]) await notify(id, 'notifications/initialized');
      await attempt(one.id, 'write', 'kept');
      assert.match((await attempt(two.id, 'read')).text, /kept/);
      assert.match((await attempt(other.id, 'read')).text, /refused/);
      const same = { jsonrpc: '2.0', id: 'same', method: 'tools/call' };
      const said = await Promise.all(
        [one, two].map(async ({ id }, at) => {
          const params = { name: 'do', arguments: { trick: `say-${at}` } };
          return (await post({ ...same, params }, { 'mcp-session-id': id })).text();
        }),
      );
      for (const [at, text] of said.entries()) assert.match(text, new RegExp(`"id":"same".*say-${at} in`));
      const methods = (await received(two.id)).map(([method]) => method);
      for (const once of ['initialize', 'notifications/initialized'])
        assert.equal(methods.filter((method) => method === once).length, 1, once);
      await close(one, two, other);
    });

    it('end one after another, and the process with the last of them', async () => {
      const [one, two] = [await open('team-a', 'k'), await open('team-a', 'k')];
      await attempt(one.id, 'write', 'kept');
      const held = attempt(one.id, 'held');
      await poll('the request', async () => (await received(two.id)).some(([trick]) => trick === 'held'));
      await close(one);
      assert.equal((await held).status, 404);
      assert.equal((await attempt(one.id, 'read')).status, 404);
      assert.match((await attempt(two.id, 'read')).text, /kept/);
      await close(two);
      const next = await open('team-a', 'k');
      assert.match((await attempt(next.id, 'read')).text, /refused/);
      await close(next);
    });

    it('all end when the process crashes, and the next one has a new process', async () => {
      const [one, two] = [await open('team-a', 'k'), await open('team-a', 'k')];
      assert.equal((await attempt(one.id, 'crash')).status, 404);
      assert.equal((await attempt(two.id, 'say')).status, 404);
      const next = await open('team-a', 'k');
      assert.match((await attempt(next.id, 'say')).text, /say in/);
      await close(next);
    });

    it('cancel their own requests, and no others', async () => {
      const [one, two] = [await open('team-a', 'k'), await open('team-a', 'k')];
      const call = message('tools/call', { name: 'do', arguments: { trick: 'held' } }) as { id: number };
      const left = new AbortController();
      const held = post(call, { 'mcp-session-id': one.id }, left.signal).catch(() => undefined);
      const heldId = await poll(
        'the request',
        async () => (await received(two.id)).find(([trick]) => trick === 'held')?.[1] ?? false,
      );
      for (const { id } of [two, one]) await notify(id, 'notifications/cancelled', { requestId: call.id });
      const cancelled = (await received(two.id)).filter(([method]) => method === 'notifications/cancelled');
      assert.deepEqual(cancelled, [['notifications/cancelled', null, heldId]]);
      left.abort();
      await held;
      await close(one, two);
    });

    it('open again with a new process when the first one refuses to be initialized, or does not answer', async () => {
      const headers = { 'temper-namespace': 'team-a', 'temper-session': 'k' };
      const refused = await post(message('initialize', { refuse: true }), headers);
      assert.match(await refused.text(), /refused/);
      const opened = await open('team-a', 'k');
      assert.match((await attempt(opened.id, 'say')).text, /say in/);
      await close(opened);
      await poll('the end of all servers', async () => (await processes('line_server.py')) === 0);
      const left = new AbortController();
      const silent = [1, 2].map(() => post(message('initialize', { held: true }), headers, left.signal));
      await poll('a process', async () => (await processes('line_server.py')) > 0);
      left.abort();
      await Promise.allSettled(silent);
      await poll('the end of all servers', async () => (await processes('line_server.py')) === 0);
      const next = await open('team-a', 'k');
      assert.match((await attempt(next.id, 'say')).text, /say in/);
      await close(next);
    });

    it('share a process up to 64: then the one that was used longest ago leaves', async () => {
      const sessions: { id: string }[] = [];
      for (let number = 0; number < 65; number += 1) sessions.push(await open('team-a', 'k'));
      const statuses = await Promise.all(sessions.map(async ({ id }) => (await attempt(id, 'say')).status));
      assert.deepEqual(statuses, [404, ...Array.from({ length: 64 }, () => 200)]);
      await close(...sessions);
    });

    it('both get what the server sends unasked', async () => {
      const [one, two] = [await open('team-a', 'k'), await open('team-a', 'k')];
      const leave = new AbortController();
      const streams = await Promise.all(
        [one, two].map(({ id }) => fetch(url, { headers: { 'mcp-session-id': id }, signal: leave.signal })),
      );
      await attempt(one.id, 'changed');
      for (const { body } of streams) {
        const { value } = (await body?.getReader().read()) ?? {};
        assert.match(Buffer.from(value ?? []).toString(), /list_changed/);
      }
      leave.abort();
      await close(one, two);
    });
  });

  it('requests that are none are refused', async () => {
    const session = await open();
    const headers = { 'mcp-session-id': session.id };
    const statuses = await Promise.all(
      [
        post('no JSON', headers),
        post('{"jsonrpc":"2.0"}', headers),
        post('['.repeat(1_000), headers),
        post(message('tools/list')),
        post(message('tools/list'), { 'mcp-session-id': 'other' }),
        fetch(url, { method: 'PUT' }),
        fetch(url.replace('/mcp', '/other')),
        fetch(url.replace('/mcp', '/healthz')),
      ].map(async (answered) => (await answered).status),
    );
    assert.deepEqual(statuses, [400, 400, 400, 400, 404, 405, 404, 200]);
    await close(session);
  });
});
