import assert from 'node:assert/strict';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Json } from '../../../src/lib/json.ts';
import { type ListedTool, pinnedDigest } from '../../../src/mcp/client/tools/listed-tool.ts';
import type { RunnerCommand } from '../../../src/sandbox/runner-command.ts';
import { bridgedServer, listedTools, publishedFolders, PYTHON } from '../../support/mcp/published-servers.ts';
import { agentObject, deleteAgents, NamespaceAgents, policyObject } from '../support/fixture.ts';
import { runInPod } from '../support/in-pod.ts';
import { type InstalledCluster, RELEASE_NAMESPACE } from '../support/installed-cluster.ts';

export const REMEMBERING = 'remembering';
/** The names of the tools for agents, and their names at the servers. */
const TOOLS = {
  memory: { remember: 'create_entities', recall: 'read_graph', forget: 'search_nodes' },
  filesystem: { note: 'write_file', notes: 'list_directory' },
  everything: { add: 'get-sum' },
  time: { convert: 'convert_time' },
  git: { history: 'git_log' },
} as const;
const TOOL_NAMES = Object.values(TOOLS).flatMap((tools) => Object.keys(tools));

/** What starts each server on this machine, to read the tools of its package. */
async function commands(
  home: string,
): Promise<Record<keyof typeof TOOLS, RunnerCommand & { environment?: Record<string, string> }>> {
  const { scriptOf, python } = await publishedFolders();
  const node = (name: string, ...more: string[]) => ({ command: process.execPath, args: [scriptOf(name), ...more] });
  const module = (...args: string[]) => ({
    command: PYTHON,
    args: ['-m', ...args],
    environment: { PYTHONPATH: python },
  });
  return {
    memory: { ...node('memory'), environment: { MEMORY_FILE_PATH: join(home, 'memory.jsonl') } },
    filesystem: node('filesystem', home),
    everything: node('everything', 'stdio'),
    time: module('mcp_server_time', '--local-timezone', 'UTC'),
    git: module('mcp_server_git'),
  };
}

/** The Capabilities of a team that read the tools of the packages. `forget` pins another definition. */
async function capabilities(): Promise<object[]> {
  const objects: object[] = [];
  for (const server of Object.keys(TOOLS) as (keyof typeof TOOLS)[]) {
    const all = await commands(tmpdir());
    await using running = await bridgedServer(() => all[server]);
    const listed = await listedTools(`http://127.0.0.1:${running.port}/mcp`, false);
    for (const [name, remoteName] of Object.entries(TOOLS[server])) {
      const tool = listed.find((one) => one.remoteName === remoteName);
      assert.ok(tool !== undefined, remoteName);
      objects.push(capability(server, name, tool));
    }
  }
  return objects;
}

function capability(server: string, name: string, tool: ListedTool): object {
  const digest = name === 'forget' ? `sha256:${'0'.repeat(64)}` : pinnedDigest(tool);
  return {
    apiVersion: 'temper.dev/v1alpha1',
    kind: 'Capability',
    metadata: { name, namespace: REMEMBERING },
    spec: {
      type: 'Tool',
      description: tool.description,
      tool: { name, category: 'file_system', action: 'code:read', inputSchema: withoutSchemaName(tool.inputSchema) },
      backend: { mcp: { server, tool: tool.remoteName, digest } },
    },
  };
}

/** The API server of Capabilities keeps any member; models get the schema without the name of its language. */
function withoutSchemaName({ $schema: _name, ...schema }: Record<string, Json>): object {
  return schema;
}

/** MCP servers from npm and PyPI that the platform runs, used by agents on pods. */
export function mcpServers(cluster: () => InstalledCluster): void {
  describe('published MCP servers that the platform runs', () => {
    let agents: NamespaceAgents;

    before(async () => {
      agents = new NamespaceAgents(cluster(), REMEMBERING);
      const grants = { tools: TOOL_NAMES };
      const tainted = { tools: TOOL_NAMES };
      const names = ['keeper', 'guest'];
      const objects = [
        policyObject(REMEMBERING, { level: { initial: 'standard', ceiling: 'standard' }, autonomy: 'Full', tainted }),
        ...(await capabilities()),
        ...names.map((name) => agentObject(REMEMBERING, name, { grants })),
      ];
      await agents.start(objects, names);
    });

    after(() => deleteAgents(cluster(), REMEMBERING));

    const say = async (agent: string, text: string): Promise<string> => {
      const { stdout } = await agents.temper('send', agent, text, '--session', 'tea', '--follow', '-o', 'text');
      return stdout;
    };

    it('an agent calls its tools, and another agent does not see what its process keeps', async () => {
      assert.match(await say('keeper', 'remember the tea'), /said: .*likes tea/);
      const other = await say('guest', 'recall the tea');
      assert.match(other, /said: .*entities/);
      assert.doesNotMatch(other, /likes tea/);
    });

    for (const [server, request, said] of [
      ['filesystem', 'note the tea', /Successfully wrote/],
      ['filesystem', 'list the files of the tea', /tea\.txt/],
      ['everything', 'add up the cups of the tea', /42/],
      ['time', 'when is the tea in London', /T04:00:00/],
      ['git', 'what was done for the tea', /Plant the tea/],
    ] as const)
      it(`an agent is answered by the published server "${server}": ${request}`, async () => {
        assert.match(await say('keeper', request), said);
      });

    it('a tool that is not the one that its Capability pins is not called', async () => {
      assert.match(await say('keeper', 'forget the tea'), /TEMPER_MCP_TOOL_CHANGED/);
    });

    it('a pod of an agent does not reach the server, which has no token and reaches nothing', async () => {
      const service = await cluster().kubectl(
        'get',
        'service',
        'temper-mcp-memory',
        '-n',
        RELEASE_NAMESPACE,
        '-o',
        'jsonpath={.spec.clusterIP}',
      );
      const attempt = (host: string, port: number): string => `
        const socket = (await import('node:net')).connect({ host: '${host}', port: ${port}, timeout: 3000 });
        const end = (said) => { console.log(JSON.stringify(said)); process.exit(0); };
        socket.on('connect', () => end('connected')).on('timeout', () => end('nothing')).on('error', () => end('nothing'));
      `;
      const pod = await agents.boundPod('keeper');
      assert.equal(await runInPod(cluster().node, pod, 'agent', attempt(service, 8080)), 'nothing');
      const list = JSON.parse(
        await cluster().kubectl(
          'get',
          'pods',
          '-n',
          RELEASE_NAMESPACE,
          '-l',
          'app.kubernetes.io/component=mcp-memory',
          '-o',
          'json',
        ),
      ) as { items: Parameters<typeof runInPod>[1][] };
      const [server] = list.items;
      assert.ok(server !== undefined && list.items.length === 1);
      const gateway = await cluster().kubectl(
        'get',
        'service',
        'temper-gateway',
        '-n',
        RELEASE_NAMESPACE,
        '-o',
        'jsonpath={.spec.clusterIP}',
      );
      assert.equal(await runInPod(cluster().node, server, 'server', attempt(gateway, 8443)), 'nothing');
      const facts = `
        const { existsSync, writeFileSync } = await import('node:fs');
        let root = 'written';
        try { writeFileSync('/opt/mcp-server/new', ''); } catch ({ code }) { root = code; }
        console.log(JSON.stringify([process.getuid(), existsSync('/var/run/secrets/kubernetes.io'), root]));
      `;
      assert.deepEqual(await runInPod(cluster().node, server, 'server', facts), [10_003, false, 'EROFS']);
    });
  });
}
