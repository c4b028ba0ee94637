import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { connect, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createServer as createTlsServer, type Server } from 'node:tls';
import { promisify } from 'node:util';
import { NO_BROKERED_TOOLS } from '../../../../src/gateway/brokered/port.ts';
import type { CapabilityTools } from '../../../../src/gateway/capabilities/capability-tools.ts';
import { type CatalogObject, pruneCapability } from '../../../../src/gateway/discovery/catalog-entries.ts';
import { isTemperError } from '../../../../src/lib/errors.ts';
import type { Json } from '../../../../src/lib/json.ts';
import { type ListedTool, pinnedDigest } from '../../../../src/mcp/client/tools/listed-tool.ts';
import { callBrokered, shownOutput } from '../../../support/gateway/brokered-caller.ts';
import { brokeredCapabilities, type EgressSetup, startEgressProxy } from '../../../support/gateway/egress-proxy.ts';
import {
  answeringProxy,
  bridgedServer,
  everythingServer,
  listedTools,
  type PublishedServer,
  publishedFolders,
  PYTHON,
} from '../../../support/mcp/published-servers.ts';

const TLS = new URL('../../../fixtures/tls/', import.meta.url);
const HOST = 'api.example.com';
const PAGES = 'tide.example.com:80';
/** The ports of the host, in the order of the servers. */
const FIRST_PORT = 9_000;

/** Servers from npm and PyPI, each as its package starts it. `fetch` reaches every page through a proxy at `webPort`. */
async function startServers(webPort: number): Promise<Record<string, PublishedServer>> {
  const { python, scriptOf } = await publishedFolders();
  const node = process.execPath;
  const web = `http://127.0.0.1:${webPort}`;
  const fromPyPI = (module: string, ...rest: string[]) =>
    bridgedServer(() => ({ command: PYTHON, args: ['-m', module, ...rest], environment: { PYTHONPATH: python } }));
  return {
    everything: await everythingServer(),
    filesystem: await bridgedServer((home) => ({ command: node, args: [scriptOf('filesystem'), home] })),
    memory: await bridgedServer((home) => ({
      command: node,
      args: [scriptOf('memory')],
      environment: { MEMORY_FILE_PATH: join(home, 'memory.jsonl') },
    })),
    ...(process.platform === 'linux'
      ? {
          git: await fromPyPI('mcp_server_git'),
          time: await fromPyPI('mcp_server_time', '--local-timezone', 'UTC'),
          fetch: await fromPyPI('mcp_server_fetch', '--allow-private-ips', '--ignore-robots-txt', '--proxy-url', web),
        }
      : {}),
  };
}

/** A TLS server in front of a port of this machine. */
async function secured(port: number): Promise<Server> {
  const [cert, key] = await Promise.all(['certificate.pem', 'key.pem'].map((name) => readFile(new URL(name, TLS))));
  const server = createTlsServer({ cert: cert ?? '', key: key ?? '' }, (socket) => {
    const upstream = connect({ host: '127.0.0.1', port });
    for (const [one, other] of [
      [socket, upstream],
      [upstream, socket],
    ] as const) {
      one.on('error', () => other.destroy());
      one.pipe(other);
    }
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return server;
}

const portOf = (server: { address(): unknown }): number => (server.address() as AddressInfo).port;

function capability(server: string, port: number, listed: ListedTool): CatalogObject {
  const name = `${server}_${listed.remoteName}`.replaceAll('-', '_');
  const { inputSchema, remoteName, sideEffects } = listed;
  const url = `https://${HOST}:${port}/mcp`;
  const spec = {
    type: 'Tool',
    description: listed.description.slice(0, 2_048),
    hasSideEffects: sideEffects,
    tool: { name, category: 'web', action: 'code:read', inputSchema },
    backend: { mcp: { url, tool: remoteName, connection: 'published', digest: pinnedDigest(listed) } },
  };
  const metadata = { name: name.replaceAll('_', '-'), namespace: 'team-a', uid: `uid-${name}`, generation: 1 };
  return pruneCapability({ metadata, spec } as CatalogObject);
}

/** An agent uses the servers that others publish, through a real gateway and a real egress proxy. */
export function publishedMcpServersSuite(open: () => EgressSetup): void {
  describe('published MCP servers that a gateway calls through the egress proxy', () => {
    const stop = new AbortController();
    const fronts: Server[] = [];
    let web: PublishedServer;
    let servers: Record<string, PublishedServer> = {};
    let proxy: Awaited<ReturnType<typeof startEgressProxy>>;
    let tools: CapabilityTools;
    let repository = '';
    let messages = 0;

    before(async () => {
      const { fixture } = open();
      web = await answeringProxy();
      servers = await startServers(web.port);
      const names = Object.keys(servers);
      const ports: number[] = [];
      for (const { port } of Object.values(servers)) {
        const front = await secured(port);
        fronts.push(front);
        ports.push(portOf(front));
      }
      proxy = await startEgressProxy(open(), (port) => ports[port - FIRST_PORT] ?? 1, stop.signal);
      const credentialFile = join(fixture.folder, 'published-token');
      await writeFile(credentialFile, 'the-token-of-published');
      const hosts = names.map((_, index) => `${HOST}:${FIRST_PORT + index}`);
      const connection = { name: 'published', hosts, namespaces: ['team-a'], credentialFile };
      tools = brokeredCapabilities(open(), proxy, { connections: [connection], signal: stop.signal });
      for (const [index, name] of names.entries())
        for (const listed of await listedTools(`http://127.0.0.1:${servers[name]?.port}/mcp`, true)) {
          const object = capability(name, FIRST_PORT + index, listed);
          tools.capabilityChanged({ type: 'added', key: `team-a/${object.metadata.name}`, object });
        }
      fixture.brokered = tools;
      const permitted = tools.list('team-a').map(({ descriptor }) => descriptor.name);
      fixture.setPolicy('publishing', {
        level: { initial: 'standard' },
        egress: { allow: [PAGES] },
        tainted: { tools: permitted, network: [PAGES, `${HOST}:*`] },
      });
      fixture.setAgent('subscriber', { grants: { tools: ['*'], network: [PAGES] } }, 'publishing');
      fixture.setAgent('other-reader', { grants: { tools: ['*'] } }, 'publishing');
      repository = join(fixture.folder, 'repository');
      await mkdir(repository);
      const git = (...args: string[]) => promisify(execFile)('git', ['-C', repository, ...args]);
      await git('init', '--quiet', '--initial-branch=main');
      await git('config', 'user.name', 'Kim');
      await git('config', 'user.email', 'kim@example.com');
      await writeFile(join(repository, 'note.txt'), 'one\n');
    });
    after(async () => {
      open().fixture.brokered = NO_BROKERED_TOOLS;
      stop.abort(new Error('the tests are over'));
      await proxy?.running;
      for (const server of Object.values(servers)) await server[Symbol.asyncDispose]();
      for (const front of fronts) front.close();
      await web?.[Symbol.asyncDispose]();
    });

    /** The output as text. */
    const call = async (name: string, input: Json = {}, agent = 'subscriber', session = 's1'): Promise<string> => {
      const called = { agent, name, input, session, message: `m-${(messages += 1)}` };
      return shownOutput(await callBrokered({ ...open(), tools }, called));
    };
    const fails = (work: Promise<unknown>, words: RegExp): Promise<void> =>
      assert.rejects(work, (error) => {
        assert.ok(isTemperError(error, 'TEMPER_TOOL_FAILED'), String(error));
        assert.match(error.message, words);
        return true;
      });

    it('server-everything: text, structured content, an image, and an operation that reports its progress', async () => {
      assert.equal(await call('everything_echo', { message: 'hello' }), 'Echo: hello');
      const weather = JSON.parse(await call('everything_get_structured_content', { location: 'Chicago' })) as object;
      assert.deepEqual(Object.keys(weather).sort(), ['conditions', 'humidity', 'temperature']);
      const image = await call('everything_get_tiny_image');
      assert.match(image, /\[image: image\/png\]/);
      assert.ok(image.length < 1_000, 'the data of the image is not kept');
      const operation = await call('everything_trigger_long_running_operation', { duration: 0.2, steps: 2 });
      assert.match(operation, /completed/);
      const wrong = call('everything_get_sum', { a: 'x', b: 1 });
      await assert.rejects(wrong, (error) => isTemperError(error, 'TEMPER_TOOL_INPUT_INVALID'));
    });

    it('server-filesystem: an agent writes and reads in the folder of its session, and no path leads out of it', async () => {
      const allowed = await call('filesystem_list_allowed_directories');
      const folder = /\/[^"\\\s]+\/workspace/.exec(allowed)?.[0] ?? '';
      const path = `${folder}/note.txt`;
      await call('filesystem_write_file', { path, content: 'hello' });
      assert.match(await call('filesystem_read_text_file', { path }), /hello/);
      await fails(call('filesystem_read_text_file', { path: '/etc/passwd' }), /outside allowed/i);
      // The process of another agent has a folder of its own.
      await fails(call('filesystem_read_text_file', { path }, 'other-reader'), /outside allowed/i);
    });

    it('server-memory: what one agent stores, its session reads, and another agent does not', async () => {
      const entities = [{ name: 'Kim', entityType: 'person', observations: ['likes tea'] }];
      await call('memory_create_entities', { entities });
      assert.match(await call('memory_read_graph'), /likes tea/);
      assert.doesNotMatch(await call('memory_read_graph', {}, 'other-reader'), /likes tea/);
      assert.doesNotMatch(await call('memory_read_graph', {}, 'subscriber', 's2'), /likes tea/);
    });

    const fromPyPI = { skip: process.platform === 'linux' ? false : 'the packages are installed on Linux only' };

    it('mcp-server-git: an agent commits a file and reads the log', fromPyPI, async () => {
      const input = { repo_path: repository };
      assert.match(await call('git_git_status', input), /note\.txt/);
      await call('git_git_add', { ...input, files: ['note.txt'] });
      assert.match(await call('git_git_commit', { ...input, message: 'Adds a note' }), /committed/);
      assert.match(await call('git_git_log', input), /Adds a note/);
      await fails(call('git_git_checkout', { ...input, branch_name: '--help' }), /./);
    });

    it('mcp-server-time: an agent converts a time', fromPyPI, async () => {
      const input = { source_timezone: 'Asia/Tokyo', time: '12:00', target_timezone: 'UTC' };
      assert.match(await call('time_convert_time', input), /T03:00/);
    });

    it('mcp-server-fetch: an agent reads a page of a host that is granted, and no other', fromPyPI, async () => {
      assert.match(await call('fetch_fetch', { url: 'http://tide.example.com/' }), /High water is at noon/);
      const other = call('fetch_fetch', { url: 'http://other.example.com/' }, 'subscriber', 's2');
      await assert.rejects(other, (error) => isTemperError(error, 'TEMPER_POLICY_DENIED'));
    });

    it('a tool of a published server whose digest is another one is not called', async () => {
      const name = 'everything_echo';
      const [found] = tools.assessed('team-a').filter(({ capability: one }) => one.tool.name === name);
      assert.ok(found !== undefined);
      const { spec, ...metadata } = found.capability;
      const digest = `sha256:${'0'.repeat(64)}`;
      const backend = { mcp: { ...spec.backend?.mcp, digest } };
      const object = pruneCapability({
        metadata: { ...metadata, generation: 2 },
        spec: { ...spec, backend },
      } as CatalogObject);
      tools.capabilityChanged({ type: 'added', key: 'team-a/everything-echo', object });
      await assert.rejects(call(name, { message: 'hello' }), (error) =>
        isTemperError(error, 'TEMPER_MCP_TOOL_CHANGED'),
      );
    });
  });
}
