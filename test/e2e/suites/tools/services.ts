import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { pinnedDigest } from '../../../../src/mcp/client/tools/listed-tool.ts';
import { fetchingServer, listedTools, publishedFolders } from '../../../support/mcp/published-servers.ts';
import { agentObject, deleteAgents, NamespaceAgents, policyObject } from '../../support/fixture.ts';
import type { InstalledCluster } from '../../support/installed-cluster.ts';
import { API_HOST, ARCHIVE_HOST, MCP_HOST, SEARCH_HOST, SERVICE_TOKEN } from '../../support/internet/addresses.ts';
import {
  ASK_ALL,
  CORRESPONDENT,
  INSIDE_CALLS,
  INSIDE_SERVERS,
  insideCalls,
} from '../../support/internet/calling-script.ts';
import type { Internet } from '../../support/internet/internet.ts';
import { stepsIn } from '../../support/internet/scripted-steps.ts';

const NAMESPACE = 'calling';
const TOOLS = ['exchange_rate', 'unpermitted_rate', 'ask_archive', 'web_search', 'fetch_page', 'inside_*'];
/** The last one is of the page that the MCP server reads. */
const HOSTS = ['*.example.com', 'tide.example.com:80'];
const NO_DIGEST = `sha256:${'0'.repeat(64)}`;
const text = { type: 'string' };

function capability(name: string, backend: object, properties: object): object {
  const tool = {
    name: name.replaceAll('-', '_'),
    category: 'web',
    action: 'comms:external',
    inputSchema: { type: 'object', properties },
  };
  return {
    apiVersion: 'temper.dev/v1alpha1',
    kind: 'Capability',
    metadata: { name, namespace: NAMESPACE },
    spec: { type: 'Tool', description: `Calls ${name}.`, tool, backend },
  };
}

/** The published MCP server that reads pages, as a user of the team read its tool. */
async function fetchPage(): Promise<object> {
  await using server = await fetchingServer((await publishedFolders()).python);
  const [tool] = await listedTools(`http://127.0.0.1:${server.port}/mcp`, true);
  assert.ok(tool !== undefined);
  const mcp = { url: `https://${MCP_HOST}/mcp`, tool: tool.remoteName, digest: pinnedDigest(tool) };
  return capability('fetch-page', { mcp }, { url: text });
}

const rates = (name: string, http: object) =>
  capability(name, { http: { method: 'GET', ...http } }, { from: text, to: text });

/** An agent calls an HTTP service, an agent elsewhere, a published MCP server and a search service, which the gateway reaches through the proxy. */
export function services(cluster: () => InstalledCluster, internet: () => Internet): void {
  describe('an agent that calls services', () => {
    let agents: NamespaceAgents;

    before(async () => {
      agents = new NamespaceAgents(cluster(), NAMESPACE);
      const objects = [
        policyObject(NAMESPACE, {
          level: { initial: 'standard', ceiling: 'standard' },
          autonomy: 'Full',
          egress: { allow: HOSTS },
          tainted: { tools: TOOLS },
        }),
        rates('exchange-rate', { url: `https://${API_HOST}/v1/rates`, connection: 'rates-api' }),
        rates('unpermitted-rate', { url: 'https://rates.example.net/v1' }),
        ...Object.entries(INSIDE_SERVERS).map(([name, url]) =>
          capability(name.replaceAll('_', '-'), { mcp: { url, tool: 'any', digest: NO_DIGEST } }, {}),
        ),
        await fetchPage(),
        capability(
          'ask-archive',
          { a2a: { url: `https://${ARCHIVE_HOST}/a2a`, connection: 'archive' } },
          { message: text, context: text, task: text },
        ),
        agentObject(NAMESPACE, CORRESPONDENT, { grants: { tools: TOOLS, network: HOSTS } }),
      ];
      await agents.start(objects, [CORRESPONDENT]);
    });

    after(() => deleteAgents(cluster(), NAMESPACE));

    it('it gets the answers of each, its pod has no credential, and a host without a permission gets no request', async () => {
      const before = (await internet().lines()).length;
      const steps = stepsIn(await agents.sendAndWait(CORRESPONDENT, ASK_ALL));
      const all = JSON.stringify(steps);
      assert.match(steps['rated'] ?? '', /"from":"EUR".*"rate":1\.25/, all);
      assert.match(steps['asked'] ?? '', /"state":"input-required".*Which year\?/, all);
      assert.match(steps['answered'] ?? '', /"state":"completed".*The archive says/, all);
      assert.match(steps['read'] ?? '', /High water is at noon/, all);
      assert.match(steps['searched'] ?? '', /"title":"About okapi"/, all);
      assert.match(steps['unpermitted'] ?? '', /TEMPER_(POLICY|FETCH)_DENIED/, all);
      const lines = (await internet().lines()).slice(before);
      const hosts = lines.flatMap((line) => (line.event === 'request' ? [line.host] : []));
      for (const host of [API_HOST, ARCHIVE_HOST, MCP_HOST, SEARCH_HOST])
        assert.ok(hosts.includes(host), hosts.join(' '));
      assert.ok(!JSON.stringify(lines).includes('example.net'), 'its name is not even resolved');
      const pod = await agents.boundPod(CORRESPONDENT);
      const logs = await cluster().kubectl('logs', pod.metadata.name, '-n', NAMESPACE, '--all-containers');
      assert.ok(!`${all}${JSON.stringify(pod)}${logs}`.includes(SERVICE_TOKEN));
    });

    it('no URL of an MCP server makes it reach anything inside', async (context) => {
      const before = (await internet().lines()).length;
      for (const [part, tools] of INSIDE_CALLS.entries()) {
        const outcomes = (await agents.sendAndWait(CORRESPONDENT, insideCalls(part))).split('\n');
        assert.equal(outcomes.length, tools.length);
        for (const [index, outcome] of outcomes.entries())
          assert.match(outcome, /TEMPER_(FETCH_DENIED|MCP_SERVER_FAILED)/, `${INSIDE_SERVERS[tools[index] ?? '']}`);
      }
      context.diagnostic(`${Object.keys(INSIDE_SERVERS).length} servers are not reached`);
      for (const line of (await internet().lines()).slice(before))
        assert.notEqual(line.event, 'connection', JSON.stringify(line));
    });
  });
}
