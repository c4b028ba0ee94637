import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { kstatusOf } from '../../../test/support/kstatus.ts';
import type { Capability } from '../../api/v1alpha1/capability.ts';
import { hasConnection } from '../../capabilities/assess.ts';
import { anAgent } from '../../discovery/agent-means.testing.ts';
import { capabilityEntry } from '../../discovery/entry.ts';
import { buildResult } from '../../discovery/result.ts';
import { isKnownReason } from '../conditions.testing.ts';
import { aCapability } from './capability.testing.ts';
import { capabilityStatus, type PlanContext, planNamespace } from './plan.ts';
import { pruneCapability, type StoredCapability } from './stored-capability.ts';

const NOW = new Date('2031-05-05T11:00:30Z');
const CONTEXT: PlanContext = {
  mcpServers: [{ name: 'git', url: 'http://temper-mcp-git.temper.svc:8080/mcp', namespaces: ['team-a'] }],
  hasEgress: true,
  connections: [
    { name: 'rates', hosts: ['api.example.com:443'], namespaces: ['team-a'] },
    { name: 'inside', hosts: ['api.example.com:443'], namespaces: ['team-a'], private: true },
    { name: 'payroll', hosts: ['pay.example.com:443'], namespaces: ['team-b'] },
  ],
  reserved: new Set(['file_read']),
  hasOtherTool: (name) => ['file_read', 'shared_tool'].includes(name),
};
const http = (url: string, connection?: string) => ({ backend: { http: { url, connection } } });
const mcp = (digest?: string) => ({ backend: { mcp: { url: 'https://mcp.example.com/mcp', digest } } });
const platform = (server: string) => ({ backend: { mcp: { server, digest: `sha256:${'0'.repeat(64)}` } } });
const ENTRY = { type: 'Skill', tool: undefined, backend: undefined, content: 'Do it.' };

const statusesOf = (capabilities: Parameters<typeof pruneCapability>[0][], context: Partial<PlanContext> = {}) =>
  planNamespace(capabilities.map(pruneCapability), { ...CONTEXT, ...context }).map((finding) => {
    const { metadata } = finding.capability;
    const status = capabilityStatus(finding, NOW);
    const { reason, message } = finding.available;
    return { name: metadata.name, reason, message, status, kstatus: kstatusOf({ metadata, status }) };
  });

describe('the conditions of Capabilities', () => {
  it('each fault has a documented reason, and kstatus reads waiting and final faults differently', () => {
    const found = statusesOf([
      aCapability('good', { spec: http('https://api.example.com/find', 'rates') }),
      aCapability('open'),
      aCapability('second', { tool: { name: 'open' }, second: 9 }),
      aCapability('reader', { tool: { name: 'file_read' } }),
      aCapability('unknown', { spec: http('https://api.example.com/', 'none') }),
      aCapability('port', { spec: http('https://api.example.com:8443/', 'rates') }),
      aCapability('private', { spec: http('https://api.example.com/', 'inside') }),
      aCapability('memory', { tool: { category: 'memory' } }),
      aCapability('schema', { tool: { inputSchema: { $ref: 'https://example.com/x' } } }),
      aCapability('needs', { spec: { requiredTools: ['file_read', 'shared_tool', 'open'] } }),
      aCapability('needs-more', { spec: { requiredTools: ['no_such_tool'] } }),
      aCapability('pinned', { spec: mcp(`sha256:${'0'.repeat(64)}`) }),
      aCapability('unpinned', { spec: mcp() }),
      aCapability('platform', { spec: platform('git') }),
      aCapability('platform-none', { spec: platform('none') }),
      aCapability('strange', { spec: { backend: {} } }),
      aCapability('skill', { spec: ENTRY }),
      aCapability('skill-with-connection', { spec: { ...ENTRY, requiredSecrets: ['rates'] } }),
      aCapability('skill-without-text', { spec: { ...ENTRY, content: undefined } }),
      aCapability('tool-without-backend', { spec: { backend: undefined } }),
      aCapability('extension', { spec: { ...ENTRY, type: 'Extension', content: undefined } }),
      aCapability('extension-without-connection', {
        spec: { ...ENTRY, type: 'Extension', content: undefined, requiredSecrets: ['payroll'] },
      }),
      aCapability('skill-without-tool', { spec: { ...ENTRY, requiredTools: ['no_such_tool'] } }),
      aCapability('skill-without-connection', { spec: { ...ENTRY, requiredSecrets: ['payroll'] } }),
    ]);
    assert.deepEqual(
      found.map(({ name, reason, kstatus }) => [name, reason, kstatus]),
      [
        ['good', 'Callable', 'Current'],
        ['open', 'Callable', 'Current'],
        ['second', 'NameTaken', 'Failed'],
        ['reader', 'NameTaken', 'Failed'],
        ['unknown', 'ConnectionMissing', 'InProgress'],
        ['port', 'HostNotPermitted', 'Failed'],
        ['private', 'HostNotPermitted', 'Failed'],
        ['memory', 'CategoryNotAllowed', 'Failed'],
        ['schema', 'SchemaInvalid', 'Failed'],
        ['needs', 'Callable', 'Current'],
        ['needs-more', 'ToolMissing', 'InProgress'],
        ['pinned', 'Callable', 'Current'],
        ['unpinned', 'DigestMissing', 'Failed'],
        ['platform', 'Callable', 'Current'],
        ['platform-none', 'McpServerMissing', 'InProgress'],
        ['strange', 'BackendNotExecuted', 'Failed'],
        ['skill', 'Loadable', 'Current'],
        ['skill-with-connection', 'Loadable', 'Current'],
        ['skill-without-text', 'CatalogueOnly', 'Current'],
        ['tool-without-backend', 'CatalogueOnly', 'Current'],
        ['extension', 'CatalogueOnly', 'Current'],
        ['extension-without-connection', 'ConnectionMissing', 'InProgress'],
        ['skill-without-tool', 'ToolMissing', 'InProgress'],
        ['skill-without-connection', 'ConnectionMissing', 'InProgress'],
      ],
    );
    for (const { status } of found) {
      for (const { type, reason } of status.conditions ?? []) {
        assert.ok(isKnownReason('Capability', type, reason), `${type} ${reason}`);
        assert.notEqual(reason, 'FieldsNotInForce');
      }
      const [available] = status.conditions ?? [];
      assert.equal(status.available, available?.status === 'True');
      assert.equal(status.observedGeneration, 1);
    }
  });

  it('a search says of each entry what its status says, for every type and requirement', () => {
    const tools = ['file_read', 'shared_tool'];
    const means = anAgent(tools, {
      hasConnection: (name) => hasConnection(name, 'team-a', CONTEXT.connections),
    });
    const types = ['Skill', 'Tool', 'Extension', 'Channel', 'Voice', 'Productivity'];
    const requirements = [
      {},
      ...['rates', 'payroll', 'nowhere'].map((name) => ({ requiredSecrets: [name] })),
      ...['shared_tool', 'no_such_tool'].map((name) => ({ requiredTools: [name] })),
      { requiredSecrets: ['rates', 'payroll'], requiredTools: ['file_read'] },
    ];
    const objects = types.flatMap((type) =>
      requirements.flatMap((required) =>
        [undefined, 'Do it.'].map((content, index) =>
          aCapability(`${type}-${JSON.stringify(required)}-${index}`, {
            spec: { ...ENTRY, type, content, ...required },
          }),
        ),
      ),
    );
    const said = statusesOf(objects).map(({ name, status }) => [name, status.available]);
    const found = objects.map((object) => {
      const entry = capabilityEntry(object as Capability);
      return [object.metadata.name, buildResult([{ entry, relevance: 1 }], means).capabilities[0]?.available];
    });
    assert.deepEqual(found, said);
    assert.equal(said.filter(([, available]) => available === true).length, 3, 'skills with a text and what they need');
  });

  it('without an egress proxy every tool waits for the platform, and a skill does not', () => {
    const found = statusesOf([aCapability('tool'), aCapability('skill', { spec: ENTRY })], { hasEgress: false });
    assert.deepEqual(
      found.map(({ reason, kstatus }) => [reason, kstatus]),
      [
        ['EgressDisabled', 'InProgress'],
        ['Loadable', 'Current'],
      ],
    );
  });

  it('a tenant reads the same about a connection of another namespace as about one that does not exist', () => {
    const [other, none] = statusesOf([
      aCapability('other', { spec: http('https://pay.example.com/', 'payroll') }),
      aCapability('none', { spec: http('https://pay.example.com/', 'nowhere') }),
    ]);
    assert.equal(other?.message.replace('payroll', 'nowhere'), none?.message);
    assert.equal(other?.reason, none?.reason);
  });

  it('a Capability that can be used again has no condition of progress left', () => {
    const [before = assert.fail()] = statusesOf([aCapability('tool')], { hasEgress: false });
    const [after] = statusesOf([aCapability('tool', { status: before.status })]);
    assert.deepEqual(
      after?.status.conditions?.map(({ type, status }) => [type, status]),
      [['Available', 'True']],
    );
  });

  it('a field without effect is named as long as the spec has it', () => {
    const inForce = { type: 'FieldsInForce', status: 'False', reason: 'FieldsNotInForce', message: 'spec.x' } as const;
    const typesOf = (capability: StoredCapability) =>
      planNamespace([capability], CONTEXT).map((finding) => {
        const status = capabilityStatus(finding, NOW);
        return { status, types: status.conditions?.map(({ type }) => type) };
      });
    const [before = assert.fail()] = typesOf({ ...pruneCapability(aCapability('tool')), fieldsInForce: inForce });
    assert.deepEqual(before.types, ['Available', 'FieldsInForce']);
    const [after] = typesOf(pruneCapability(aCapability('tool', { status: before.status })));
    assert.deepEqual(after?.types, ['Available']);
  });

  it('the operator keeps neither schemas nor the text of a skill', () => {
    const large = 'x'.repeat(10_000);
    const tool = pruneCapability(
      aCapability('tool', { tool: { inputSchema: { type: 'object', description: large } } }),
    );
    const skill = pruneCapability(aCapability('skill', { spec: { ...ENTRY, content: large } }));
    assert.ok(JSON.stringify([tool, skill]).length < 2_500);
    assert.ok((tool.tool?.characters ?? 0) > 10_000);
  });
});
