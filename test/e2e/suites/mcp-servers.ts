import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Json } from '../../../src/lib/json.ts';
import { pinnedDigest } from '../../../src/mcp/client/tools/listed-tool.ts';
import { bridgedServer, listedTools, publishedFolders } from '../../support/mcp/published-servers.ts';
import { agentObject, deleteAgents, NamespaceAgents, policyObject } from '../support/fixture.ts';
import { runInPod } from '../support/in-pod.ts';
import { type InstalledCluster, RELEASE_NAMESPACE } from '../support/installed-cluster.ts';

export const REMEMBERING = 'remembering';
/** The names of the tools for agents, and at the server. */
const TOOLS = { remember: 'create_entities', recall: 'read_graph', forget: 'search_nodes' } as const;

/** The Capabilities of a team that read the tools of the package. `forget` pins another definition. */
async function capabilities(): Promise<object[]> {
  const { scriptOf } = await publishedFolders();
  await using server = await bridgedServer((home) => ({
    command: process.execPath,
    args: [scriptOf('memory')],
    environment: { MEMORY_FILE_PATH: join(home, 'memory.jsonl') },
  }));
  const listed = await listedTools(`http://127.0.0.1:${server.port}/mcp`, false);
  return Object.entries(TOOLS).map(([name, remoteName]) => {
    const tool = listed.find((one) => one.remoteName === remoteName);
    assert.ok(tool !== undefined, remoteName);
    const digest = name === 'forget' ? `sha256:${'0'.repeat(64)}` : pinnedDigest(tool);
    return {
      apiVersion: 'temper.dev/v1alpha1',
      kind: 'Capability',
      metadata: { name, namespace: REMEMBERING },
      spec: {
        type: 'Tool',
        description: tool.description,
        tool: { name, category: 'file_system', action: 'code:read', inputSchema: withoutSchemaName(tool.inputSchema) },
        backend: { mcp: { server: 'memory', tool: remoteName, digest } },
      },
    };
  });
}

/** The API server of Capabilities keeps any member; models get the schema without the name of its language. */
function withoutSchemaName({ $schema: _name, ...schema }: Record<string, Json>): object {
  return schema;
}

/** A published MCP server that the platform runs, used by agents on pods. */
export function mcpServers(cluster: () => InstalledCluster): void {
  describe('an MCP server of the platform', () => {
    let agents: NamespaceAgents;

    before(async () => {
      agents = new NamespaceAgents(cluster(), REMEMBERING);
      const grants = { tools: Object.keys(TOOLS) };
      const tainted = { tools: Object.keys(TOOLS) };
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
