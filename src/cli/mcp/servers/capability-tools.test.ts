import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Capability, CapabilitySpec } from '../../../api/v1alpha1/capability.ts';
import { pinnedDigest, readListedTools } from '../../../mcp/client/tools/listed-tool.ts';
import { serverToolDescriptor } from '../../../mcp/client/tools/server-tools.ts';
import type { AcceptedServer } from '../../../standalone/team/mcp-tools.ts';
import { withCapabilities } from './capability-tools.ts';

const { tools } = readListedTools({ name: 'search', isElsewhere: true }, [
  { name: 'find', description: 'Finds.', inputSchema: { type: 'object' }, annotations: { destructiveHint: false } },
  { name: 'open', description: 'Opens.', inputSchema: { type: 'object' } },
]);
const SEARCH = { name: 'search', category: 'mcp', url: 'https://mcp.example.com/mcp' } as const;
const SERVER: AcceptedServer = {
  server: SEARCH,
  tools,
  offered: tools.map((tool) => ({ tool, descriptor: serverToolDescriptor(tool, SEARCH) })),
};
const TOOL: NonNullable<CapabilitySpec['tool']> = {
  name: 'web_find',
  category: 'web',
  inputSchema: { type: 'object' },
};
const MCP = { url: 'https://mcp.example.com/mcp', tool: 'find' };

function capability(rest: Partial<CapabilitySpec> = {}): Capability {
  const spec: CapabilitySpec = {
    type: 'Tool',
    description: 'Finds pages.',
    tool: TOOL,
    backend: { mcp: MCP },
    ...rest,
  };
  return { apiVersion: 'temper.dev/v1alpha1', kind: 'Capability', metadata: { name: 'c' }, spec } as Capability;
}

describe('Capability objects of MCP servers', () => {
  it('an accepted tool is offered as the Capability describes it, beside itself', () => {
    const { servers, problems } = withCapabilities([SERVER], [capability({ hasSideEffects: false })]);
    assert.deepEqual(problems, []);
    const [own, , added] = servers[0]?.offered ?? [];
    assert.deepEqual([own, added?.tool], [SERVER.offered[0], tools[0]]);
    assert.deepEqual(added?.descriptor, {
      name: 'web_find',
      description: 'Finds pages.',
      inputSchema: { type: 'object' },
      category: 'web',
      action: 'comms:external',
      sideEffects: false,
      hosts: ['mcp.example.com'],
      locality: 'Brokered',
      resultOrigin: 'Mcp',
      topics: { tags: [], requiredTools: [], links: [] },
    });
  });

  it('a Capability with the name of a server is for the server of the user with this name', () => {
    const named = (server: string) => capability({ backend: { mcp: { server, tool: 'find' } } });
    const { servers, problems } = withCapabilities([SERVER], [named('search'), named('other')]);
    assert.equal(servers[0]?.offered.length, 3);
    assert.match(problems.join(), /no server with accepted tools and the name "other"/);
  });

  it('a Capability without a server is no concern of a run, and two of one name are one tool', () => {
    assert.deepEqual(withCapabilities([SERVER], [capability({ backend: {} })]), { servers: [SERVER], problems: [] });
    const { servers, problems } = withCapabilities([SERVER], [capability(), capability()]);
    assert.deepEqual([servers[0]?.offered.length, problems.length], [3, 1]);
  });

  it('a Capability with the name of the accepted tool and its digest stands in place of it', () => {
    const [find] = tools;
    assert.ok(find !== undefined);
    const pinned = { ...MCP, digest: pinnedDigest(find) };
    const same = { backend: { mcp: pinned }, tool: { ...TOOL, name: 'search_find' } };
    const { servers, problems } = withCapabilities([SERVER], [capability(same), capability(same)]);
    const described = servers[0]?.offered.map(({ descriptor }) => [descriptor.name, descriptor.description]);
    assert.deepEqual(described, [
      ['search_open', 'Opens.'],
      ['search_find', 'Finds pages.'],
    ]);
    assert.match(problems.join(), /^Capability\/c cannot be used: another tool is named "search_find"$/);
  });

  for (const [rest, reason] of [
    [
      { backend: { mcp: { url: 'https://other.example.com/mcp' } } },
      /no server with accepted tools at https:\/\/other/,
    ],
    [{ backend: { mcp: { ...MCP, connection: 'other' } } }, /the server at its url is "search"/],
    [{ backend: { mcp: { ...MCP, tool: 'delete' } } }, /no user accepted tool "delete"/],
    [{ backend: { mcp: MCP }, tool: { ...TOOL, name: 'file_read' } }, /another tool is named "file_read"/],
    [{ backend: { mcp: MCP }, tool: { ...TOOL, name: 'search_open' } }, /another tool is named "search_open"/],
    [{ backend: { mcp: { ...MCP, digest: `sha256:${'0'.repeat(64)}` } } }, /its digest is not that of tool "find"/],
    [{ tool: { ...TOOL, category: 'memory' } }, /its category is memory/],
    [{ requiredSecrets: ['mail'] }, /requires connection mail/],
    [{ requiredTools: ['mail_send'] }, /requires tool mail_send/],
    [{ tool: { ...TOOL, inputSchema: { type: 'object', properties: 7 } } }, /properties/],
  ] as [Partial<CapabilitySpec>, RegExp][]) {
    it(`a Capability that cannot be used has a reason: ${JSON.stringify(rest)}`, () => {
      const { servers, problems } = withCapabilities([SERVER], [capability(rest)]);
      assert.deepEqual(servers, [SERVER]);
      assert.match(problems.join(), reason);
    });
  }
});
