import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import type { CapabilitySpec } from '../../api/v1alpha1/capability.ts';
import type { Connection } from '../../connections/connection.ts';
import { pruneCapability } from '../discovery/catalog-entries.ts';
import { CapabilityTools } from './capability-tools.ts';

const CONNECTION: Connection = {
  name: 'search',
  hosts: ['api.example.com:443'],
  namespaces: ['team-a'],
  credentialFile: '/none',
};

describe('the tools of Capability objects', () => {
  let tools: CapabilityTools;
  let changed: string[];
  let warned: string[];
  let serial = 0;

  const open = (hasEgress = true, connections = [CONNECTION, { ...CONNECTION, name: 'inside', private: true }]) =>
    new CapabilityTools({
      mcpServers: [{ name: 'git', url: 'http://temper-mcp-git.temper.svc:8080/mcp', namespaces: ['team-a'] }],
      hasEgress,
      connections,
      hasOtherTool: (_namespace, name) => name === 'shared_tool',
      create: () => ({ requests: () => [], execute: async () => null }),
      onChange: (namespace) => changed.push(namespace),
      onUnavailable: ({ name }, { reason }) => warned.push(`${name} ${reason}`),
    });
  beforeEach(() => {
    changed = [];
    warned = [];
    serial = 0;
    tools = open();
  });

  const set = (name: string, changes: object = {}, namespace = 'team-a', type: 'added' | 'deleted' = 'added'): void => {
    serial += 1;
    const { tool = {}, ...rest } = changes as Partial<CapabilitySpec>;
    const object = {
      metadata: {
        name,
        namespace,
        uid: `uid-${name}`,
        generation: serial,
        creationTimestamp: `2026-05-04T12:00:${String(serial).padStart(2, '0')}Z`,
      },
      spec: {
        type: 'Tool',
        description: 'Searches.',
        tool: { name: 'find', category: 'web', inputSchema: { type: 'object' }, ...tool },
        backend: { http: { url: 'https://api.example.com/find' } },
        ...rest,
      },
    };
    const change = { key: `${namespace}/${name}`, object: pruneCapability(object) };
    tools.capabilityChanged(type === 'added' ? { ...change, type } : { ...change, type, tombstone: false });
  };
  const reasons = (namespace = 'team-a') =>
    tools.assessed(namespace).map(({ capability, unavailable }) => [capability.name, unavailable?.reason]);

  it('a tool is listed in its namespace alone, as its manifest describes it', () => {
    set('web-search', { hasSideEffects: false });
    assert.deepEqual(
      tools.list('team-a').map(({ descriptor }) => descriptor),
      [
        {
          name: 'find',
          description: 'Searches.',
          inputSchema: { type: 'object' },
          category: 'web',
          action: 'comms:external',
          sideEffects: false,
          locality: 'Brokered',
          resultOrigin: 'Web',
          hosts: ['api.example.com'],
          topics: { tags: [], requiredTools: [], links: [] },
        },
      ],
    );
    assert.equal(tools.find('team-b', 'find'), undefined);
    assert.deepEqual(changed, ['team-a']);
  });

  it('another definition has another digest, and a deleted object has no tool', () => {
    set('web-search');
    const before = tools.find('team-a', 'find')?.definition;
    set('web-search', { description: 'Searches more.' });
    assert.notEqual(tools.find('team-a', 'find')?.definition, before);
    set('web-search', {}, 'team-a', 'deleted');
    assert.equal(tools.find('team-a', 'find'), undefined);
  });

  it('the older object keeps its name, and no object takes that of a built-in tool', () => {
    set('first');
    set('second');
    set('reader', { tool: { name: 'file_read' } });
    assert.deepEqual(reasons(), [
      ['first', undefined],
      ['second', 'NameTaken'],
      ['reader', 'NameTaken'],
    ]);
    set('first', {}, 'team-a', 'deleted');
    assert.deepEqual(reasons()[0], ['second', undefined]);
  });

  it('a connection counts for its namespaces and hosts only, and not when it is for a private network', () => {
    const http = (url: string, connection?: string) => ({ backend: { http: { url, connection } } });
    set('good', http('https://api.example.com/find', 'search'));
    set('port', { ...http('https://api.example.com:8443/find', 'search'), tool: { name: 'b' } });
    set('unknown', { ...http('https://api.example.com/find', 'none'), tool: { name: 'c' } });
    set('inside', { ...http('https://api.example.com/find', 'inside'), tool: { name: 'd' } });
    set('secret', { requiredSecrets: ['none'], tool: { name: 'e' } });
    assert.deepEqual(reasons(), [
      ['good', undefined],
      ['port', 'HostNotPermitted'],
      ['unknown', 'ConnectionMissing'],
      ['inside', 'HostNotPermitted'],
      ['secret', 'ConnectionMissing'],
    ]);
    set('stolen', http('https://api.example.com/find', 'search'), 'team-b');
    assert.deepEqual(reasons('team-b'), [['stolen', 'ConnectionMissing']]);
  });

  it('a tool of an MCP server needs the digest of its definition', () => {
    const mcp = (digest?: string) => ({ backend: { mcp: { url: 'https://api.example.com/mcp', digest } } });
    set('pinned', mcp(`sha256:${'0'.repeat(64)}`));
    set('open', { ...mcp(), tool: { name: 'b' } });
    set('both', { backend: { ...mcp('x').backend, http: { url: 'https://api.example.com' } }, tool: { name: 'c' } });
    assert.deepEqual(reasons(), [
      ['pinned', undefined],
      ['open', 'DigestMissing'],
    ]);
    const [found] = tools.list('team-a');
    assert.deepEqual([found?.descriptor.resultOrigin, found?.descriptor.hosts], ['Mcp', ['api.example.com']]);
  });

  it('an MCP server of the platform is for its namespaces, needs no egress, and is no host', () => {
    const digest = `sha256:${'0'.repeat(64)}`;
    const at = (server: string) => ({ backend: { mcp: { server, digest } } });
    tools = open(false);
    set('log', at('git'));
    set('other', { ...at('none'), tool: { name: 'b' } });
    set('open', { backend: { mcp: { server: 'git' } }, tool: { name: 'c' } });
    set('log', at('git'), 'team-b');
    assert.deepEqual(reasons(), [
      ['log', undefined],
      ['other', 'McpServerMissing'],
      ['open', 'DigestMissing'],
    ]);
    assert.deepEqual(reasons('team-b'), [['log', 'McpServerMissing']]);
    const [found] = tools.list('team-a');
    assert.deepEqual([found?.descriptor.resultOrigin, found?.descriptor.hosts], ['Mcp', undefined]);
  });

  it('categories of grants, unsafe schemas and missing tools are refused with a reason', () => {
    set('memory', { tool: { name: 'a', category: 'memory' } });
    set('schema', { tool: { name: 'b', inputSchema: { type: 'object', $ref: 'https://example.com/x' } } });
    set('needs', { tool: { name: 'c' }, requiredTools: ['file_read', 'shared_tool', 'd'] });
    set('needed', { tool: { name: 'd' }, requiredTools: ['no_such_tool'] });
    set('searches', { tool: { name: 'e' }, requiredTools: ['web_search'] });
    assert.deepEqual(reasons(), [
      ['memory', 'CategoryNotAllowed'],
      ['schema', 'SchemaInvalid'],
      ['needs', undefined],
      ['needed', 'ToolMissing'],
      ['searches', 'ToolMissing'],
    ]);
  });

  it('without an egress proxy no tool can be called', () => {
    tools = open(false);
    set('web-search');
    assert.deepEqual(reasons(), [['web-search', 'EgressDisabled']]);
    tools.refresh('team-a');
    assert.deepEqual(reasons(), [['web-search', 'EgressDisabled']]);
    assert.deepEqual(warned, ['web-search EgressDisabled']);
  });

  it('a namespace has a limited number of tools', () => {
    for (let at = 0; at < 130; at += 1) set(`c-${at}`, { tool: { name: `t_${at}` } });
    assert.equal(tools.list('team-a').length, 128);
    assert.equal(reasons().filter(([, reason]) => reason === 'LimitReached').length, 2);
  });

  it('an object of an older schema, or without a backend, is no tool', () => {
    set('entry', { backend: undefined });
    set('strange', { backend: {} });
    assert.deepEqual(reasons(), []);
  });
});
