import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { EmergentTool, ToolArtifact } from '../api/v1alpha1/emergenttool.ts';
import { emergentCapability } from './emergent.ts';

function aTool(implementation: ToolArtifact['implementation'], active = true): EmergentTool {
  return {
    apiVersion: 'temper.dev/v1alpha1',
    kind: 'EmergentTool',
    metadata: { name: 'csv-rows-abc' },
    spec: {
      artifact: {
        name: 'csv_rows',
        description: 'Parses CSV.',
        inputSchema: '{"type":"object","properties":{"text":{"type":"string"}}}',
        outputSchema: '{"type":"object"}',
        implementation,
        tests: [{ input: '{}' }],
        requires: { apis: [], domains: [], paths: [] },
        limits: { duration: '5s', memory: '128Mi' },
      },
      digest: `sha256:${'0'.repeat(64)}`,
      tier: 'Agent',
    },
    status: { active },
  };
}

describe('a forged tool in discovery', () => {
  it('a forged tool has the id, category and tags of its kind, and its schemas', () => {
    const found = emergentCapability(aTool({ mode: 'Sandbox', source: 'function execute() {}' }));
    assert.equal(found.id, 'emergent-tool:csv_rows');
    assert.equal(found.category, 'emergent');
    assert.deepEqual(found.tags, ['runtime-created', 'agent-forged', 'sandbox']);
    assert.deepEqual(found.fullSchema['input'], { type: 'object', properties: { text: { type: 'string' } } });
    assert.equal(found.available, true);
    assert.equal(found.hasSideEffects, false);
  });

  it('a composed tool lists each required tool once', () => {
    const step = (tool: string) => ({ name: 'a', tool, inputMapping: '{}' });
    const steps = [step('file_read'), step(`csv_rows@sha256:${'1'.repeat(64)}`), step('file_read')];
    const found = emergentCapability(aTool({ mode: 'Compose', steps }));
    assert.deepEqual(found.requiredTools, ['file_read', 'csv_rows']);
    assert.ok(found.tags.includes('compose'));
    assert.equal(found.hasSideEffects, true);
  });

  it('an inactive tool is shown as not available', () => {
    assert.equal(emergentCapability(aTool({ mode: 'Sandbox', source: 'x' }, false)).available, false);
  });
});
