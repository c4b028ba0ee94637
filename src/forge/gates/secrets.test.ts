import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import { checkSecrets } from './secrets.ts';

/** Assembled at run time, so that secret scanners do not report this file. */
const KEY = ['AKIA', 'Q3EGRMWSPLVH7K2D'].join('');
const SAMPLE_KEY = ['AKIA', 'IOSFODNN7EXAMPLE'].join('');

function artifact(changes: Partial<ToolArtifact>): ToolArtifact {
  return {
    name: 'reader',
    description: 'Reads.',
    inputSchema: '{"type":"object"}',
    outputSchema: '{"type":"object"}',
    implementation: { mode: 'Sandbox', source: 'function execute() { return {}; }' },
    tests: [{ input: '{}', expectedOutput: '{}' }],
    requires: { apis: [], domains: [], paths: [] },
    limits: { duration: '1s', memory: '64Mi' },
    ...changes,
  };
}

const source = (text: string): Partial<ToolArtifact> => ({ implementation: { mode: 'Sandbox', source: text } });
const violations = (changes: Partial<ToolArtifact>): string[] =>
  checkSecrets(artifact(changes)).map(({ message }) => message);

describe('secrets in a tool', () => {
  it('a key is refused in every part that runs or is shown, with the name of the part', () => {
    const step = { name: 'one', tool: 'other', inputMapping: JSON.stringify({ key: KEY }) };
    const parts: [RegExp, Partial<ToolArtifact>][] = [
      [/^description contains an AWS access key/, { description: `Reads with ${KEY}.` }],
      [/^inputSchema /, { inputSchema: JSON.stringify({ default: KEY }) }],
      [/^outputSchema /, { outputSchema: JSON.stringify({ default: KEY }) }],
      [/^implementation\.code /, source(`const key = "${KEY}";`)],
      [/^the inputMapping of step "one" /, { implementation: { mode: 'Compose', steps: [step] } }],
      [/^test case 1 /, { tests: [{ input: JSON.stringify({ key: KEY }), expectedOutput: '{}' }] }],
    ];
    for (const [message, changes] of parts) {
      const found = violations(changes);
      assert.equal(found.length, 1, String(message));
      assert.match(found[0] ?? '', message);
      assert.ok(!found[0]?.includes(KEY), 'the message repeats the key');
    }
  });

  it('a visible sample is accepted outside of test cases too', () => {
    for (const text of [
      `Parses keys such as ${SAMPLE_KEY}.`,
      'Connects to https://bob:password@example.com/.',
      '-----BEGIN PRIVATE KEY----- is the first line.',
    ]) {
      assert.deepEqual(violations({ description: text }), [], text);
      assert.deepEqual(violations(source(`// ${text}`)), [], text);
    }
  });
});
