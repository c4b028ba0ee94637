import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ToolDescriptor } from '../../tools/contract.ts';
import { originOfTool } from './origins.ts';

type Origins = Parameters<typeof originOfTool>[0];

describe('the origin of the result of a tool', () => {
  const tool = (category: ToolDescriptor['category'], rest: Partial<NonNullable<Origins>> = {}): Origins => ({
    name: 'x',
    action: 'code:read',
    category,
    ...rest,
  });

  it('the origin follows from the category, the action and what executes the tool', () => {
    assert.equal(originOfTool(tool('file_system')), 'File');
    assert.equal(originOfTool(tool('memory')), 'Memory');
    assert.equal(originOfTool(tool('database', { action: 'db:query' })), 'Database');
    assert.equal(originOfTool(tool('database', { resultOrigin: 'Mcp' })), 'Mcp');
    assert.equal(originOfTool(tool('web')), 'Web');
    assert.equal(originOfTool(tool('code_execution', { action: 'comms:external' })), 'Web');
    assert.equal(originOfTool(tool('communication', { name: 'agent_message' })), 'Reply');
    assert.equal(originOfTool(tool('code_execution')), 'Tool');
    assert.equal(originOfTool(tool('terminal', { action: 'code:write' })), 'File');
    assert.equal(originOfTool(tool('version_control', { action: 'vcs:read' })), 'File');
    assert.equal(originOfTool(tool('version_control', { action: 'comms:external' })), 'Web');
    assert.equal(originOfTool(tool('terminal', { action: 'example.com/ops:run' })), 'Web');
    assert.equal(originOfTool(undefined), 'Engine');
  });
});
