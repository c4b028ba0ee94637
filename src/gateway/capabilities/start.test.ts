import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, it } from 'node:test';
import { callOptions } from '../../../test/support/call-options.ts';
import { pollValue } from '../../../test/support/poll.ts';
import { systemClock } from '../../lib/clock.ts';
import { pinnedDigest, readListedTools } from '../../mcp/client/tools/listed-tool.ts';
import { type CatalogObject, pruneCapability } from '../discovery/catalog-entries.ts';
import { said, TestServer } from './mcp/mcp-server.testing.ts';
import { watchCapabilities } from './start.ts';
import { DELIVERY } from './tunnels.testing.ts';

const TOOL = { name: 'find', description: 'Finds.', inputSchema: { type: 'object' } };

const server = new TestServer();
const http = createServer(server.handler);
before(async () => {
  server.tools = [TOOL];
  server.call = () => said('found');
  await once(http.listen(0, '127.0.0.1'), 'listening');
});
after(() => {
  http.closeAllConnections();
  http.close();
});

it('a gateway without egress calls a server of the platform, and reports its open sessions until it drains', async () => {
  const url = `http://localhost:${(http.address() as AddressInfo).port}/mcp`;
  const draining = new AbortController();
  const [listed] = readListedTools({ name: 'x', isElsewhere: false, isOfCapability: true }, [TOOL]).tools;
  assert.ok(listed !== undefined);
  let sessions = (): number => Number.NaN;
  const object = pruneCapability({
    metadata: { name: 'find', namespace: 'team-a', uid: 'uid-find', generation: 1 },
    spec: {
      type: 'Tool',
      description: 'Finds.',
      tool: { name: 'find', category: 'web', inputSchema: { type: 'object' } },
      backend: { mcp: { server: 'index', digest: pinnedDigest(listed) } },
    },
  } as unknown as CatalogObject);
  const watches = {
    capabilities: {
      subscribe: (tell: (change: object) => void) => tell({ type: 'added', key: 'team-a/find', object }),
    },
    tools: { subscribe: () => undefined },
  };
  const deps = {
    connections: [],
    mcpServers: [{ name: 'index', url, namespaces: ['team-a'] }],
    services: { find: () => undefined },
    deliveryTokens: { sign: () => '' },
    catalog: { promotedTools: () => [] },
    directory: { toolsChanged: () => undefined },
    clock: systemClock,
    log: { warn: (fields: object) => assert.fail(JSON.stringify(fields)) },
    draining: draining.signal,
    metrics: {
      watch(name: string, _labels: object, read: () => number) {
        assert.equal(name, 'temper_mcp_sessions');
        sessions = read;
      },
    },
  };
  const tools = watchCapabilities(watches as never, deps as never);
  assert.equal(sessions(), 0);
  const tool = tools.find('team-a', 'find');
  assert.ok(tool !== undefined);
  assert.deepEqual(tool.requests({}), []);
  assert.equal(await tool.execute({}, DELIVERY, callOptions()), 'found');
  assert.equal(sessions(), 1);
  draining.abort(new Error('the gateway drains'));
  await pollValue('the open sessions', sessions, (open) => open === 0);
});
