import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, realpath, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import type { JsonObject } from '../../../src/lib/json.ts';
import type { AgentEvent } from '../../../src/tools/events.ts';
import { tool } from '../../cluster/tools.ts';
import { jsonLines } from '../../support/json-lines.ts';
import { answeringProxy, bridgedServer, publishedFolders, PYTHON } from '../../support/mcp/published-servers.ts';
import { ROOT, temper, temporaryFolder } from '../../system/command.ts';

const run = promisify(execFile);
const LINUX = process.platform === 'linux' ? false : 'only Linux confines programs that are no JavaScript';

const MANIFESTS = `
apiVersion: temper.dev/v1alpha1
kind: Agent
metadata: {name: user}
spec:
  trustPolicyRef: {name: open}
  model: {primary: default/default}
  prompt: {system: You use the tools of servers.}
  grants: {tools: ['s_*'], network: ['tide.example.com:80']}
---
apiVersion: temper.dev/v1alpha1
kind: TrustPolicy
metadata: {name: open}
spec:
  level: {initial: standard, ceiling: standard}
  autonomy: Full
  egress: {allow: ['tide.example.com:80']}
  tainted: {tools: ['s_*'], network: ['tide.example.com:80']}
`;

interface Called {
  tool: string;
  input: JsonObject;
}

/** An agent whose user has one server, named `s`, accepts all its tools, and makes these calls one after another. */
async function callServer(
  server: JsonObject | ((folder: string) => JsonObject | Promise<JsonObject>),
  calls: readonly Called[] | ((folder: string) => readonly Called[]),
): Promise<Extract<AgentEvent, { type: 'tool-result' }>[]> {
  await using home = await temporaryFolder();
  const path = await realpath(home.path);
  const at = (...names: string[]): string => join(path, ...names);
  for (const folder of ['project', 'data', 'config/temper']) await mkdir(at(folder), { recursive: true });
  const entry = typeof server === 'function' ? await server(at('data')) : server;
  const servers = [{ name: 's', category: 'file_system', ...entry }];
  await writeFile(at('config/temper/mcp.yaml'), JSON.stringify({ servers }), { mode: 0o600 });
  const made = typeof calls === 'function' ? calls(at('data')) : calls;
  const rules = made.map(({ tool: name, input }, index) => ({
    when: { turn: index + 1 },
    answer: { toolCalls: [{ name: `s_${name}`, arguments: input }] },
  }));
  await writeFile(at('project/agent.yaml'), MANIFESTS);
  await writeFile(at('project/script.yaml'), JSON.stringify({ rules: [...rules, { answer: { text: 'Done.' } }] }));
  const command = (...args: string[]) =>
    temper(args, { cwd: at('project'), environment: { XDG_CONFIG_HOME: at('config') } });
  const listed = await command('mcp', 'tools', 's');
  const digest = /--digest (sha256:[0-9a-f]{64})\n$/.exec(listed.stdout)?.[1];
  assert.ok(digest !== undefined, `${listed.stdout}${listed.stderr}`);
  assert.equal((await command('mcp', 'accept', 's', '--digest', digest)).code, 0);
  const options = ['-f', 'agent.yaml', '--model-script', 'script.yaml', '--output', 'json'];
  const { code, stdout, stderr } = await command('run', ...options, '-m', 'go');
  assert.equal(code, 0, `${stdout}${stderr}`);
  return jsonLines<AgentEvent>(stdout).filter((event) => event.type === 'tool-result');
}

const script = async (name: string): Promise<JsonObject> => ({
  folder: await tool('mcp-servers'),
  program: `node_modules/@modelcontextprotocol/server-${name}/dist/index.js`,
});

async function python(module: string, rest: JsonObject = {}): Promise<JsonObject> {
  if (!existsSync(join(ROOT, 'dist/launcher/temper-launcher'))) await run('make', ['-s', 'launcher'], { cwd: ROOT });
  const { python: folder } = await publishedFolders();
  return { command: 'python3', arguments: ['-m', module], folder, environment: { PYTHONPATH: folder }, ...rest };
}

const shown = (results: readonly object[], index: number): string => JSON.stringify(results[index]);

describe('published MCP servers with temper run', () => {
  it('server-everything', async () => {
    const server = { ...(await script('everything')), arguments: ['stdio'] };
    const results = await callServer(server, [
      { tool: 'echo', input: { message: 'hello' } },
      { tool: 'get-sum', input: { a: 2, b: 3 } },
    ]);
    assert.match(shown(results, 0), /Echo: hello/);
    assert.match(shown(results, 1), /The sum of 2 and 3 is 5/);
  });

  it('server-filesystem reads and writes its folder, and the confinement holds where its own rule does not', async () => {
    const results = await callServer(
      async (data) => ({ ...(await script('filesystem')), arguments: [data, '/usr'], write: [data] }),
      (data) => [
        { tool: 'write_file', input: { path: `${data}/note.txt`, content: 'hello' } },
        { tool: 'read_text_file', input: { path: `${data}/note.txt` } },
        { tool: 'list_directory', input: { path: '/usr' } },
      ],
    );
    assert.deepEqual(
      results.map(({ ok }) => ok),
      [true, true, false],
      JSON.stringify(results),
    );
    assert.match(shown(results, 1), /hello/);
  });

  it('server-memory keeps its graph in a folder of the user', async () => {
    const results = await callServer(
      async (data) => ({
        ...(await script('memory')),
        write: [data],
        environment: { MEMORY_FILE_PATH: `${data}/memory.jsonl` },
      }),
      [
        {
          tool: 'create_entities',
          input: { entities: [{ name: 'Kim', entityType: 'person', observations: ['likes tea'] }] },
        },
        { tool: 'read_graph', input: {} },
      ],
    );
    assert.match(shown(results, 1), /likes tea/);
  });

  it('mcp-server-git behind the launcher reads and stages in its folder, and changes no modes of files', {
    skip: LINUX,
  }, async () => {
    const results = await callServer(
      async (data) => {
        const git = (...args: string[]) =>
          run('git', ['-C', data, '-c', 'user.name=K', '-c', 'user.email=k@x', ...args]);
        await git('init', '--quiet', '--initial-branch=main');
        await git('commit', '--quiet', '--allow-empty', '--message', 'Begins');
        await writeFile(join(data, 'note.txt'), 'one\n');
        return python('mcp_server_git', { write: [data], programs: ['git'] });
      },
      (data) => [
        { tool: 'git_log', input: { repo_path: data } },
        { tool: 'git_add', input: { repo_path: data, files: ['note.txt'] } },
        { tool: 'git_diff_staged', input: { repo_path: data } },
        { tool: 'git_commit', input: { repo_path: data, message: 'Adds a note' } },
        { tool: 'git_status', input: { repo_path: ROOT } },
      ],
    );
    assert.deepEqual(
      results.map(({ ok }) => ok),
      [true, true, true, false, false],
      JSON.stringify(results),
    );
    assert.match(shown(results, 0), /Begins/);
    assert.match(shown(results, 2), /note\.txt/);
    assert.match(shown(results, 3), /chmod/);
  });

  it('mcp-server-time behind the launcher', { skip: LINUX }, async () => {
    const input = { source_timezone: 'Asia/Tokyo', time: '12:00', target_timezone: 'UTC' };
    const server = await python('mcp_server_time', { arguments: ['-m', 'mcp_server_time', '--local-timezone', 'UTC'] });
    assert.match(shown(await callServer(server, [{ tool: 'convert_time', input }]), 0), /T12:00:00\+09:00/);
  });

  it('mcp-server-fetch has no network behind the launcher, and a user starts it and gives its URL', {
    skip: LINUX,
  }, async () => {
    const call = { tool: 'fetch', input: { url: 'http://tide.example.com/' } };
    const options = ['-m', 'mcp_server_fetch', '--allow-private-ips', '--ignore-robots-txt'];
    await using web = await answeringProxy();
    const args = [...options, '--proxy-url', `http://127.0.0.1:${web.port}`];
    const confined = await callServer(await python('mcp_server_fetch', { arguments: args }), [call]);
    assert.match(shown(confined, 0), /Failed to fetch/);
    const { python: folder } = await publishedFolders();
    const environment = { PYTHONPATH: folder };
    await using server = await bridgedServer(() => ({ command: PYTHON, args, environment }));
    const reached = await callServer({ url: `http://127.0.0.1:${server.port}/mcp` }, [call]);
    assert.match(shown(reached, 0), /High water is at noon/);
  });
});
