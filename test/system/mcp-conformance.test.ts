import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { promisify, stripVTControlCharacters } from 'node:util';
import { plainEnvironment, ROOT, startTemper } from './command.ts';
import { doublingAgent, doublingScript } from './doubling-agent.ts';
import { bridgeTo } from './http-bridge.ts';
import { SERVE } from './mcp-client.ts';
import { openProject } from './project.ts';

const SUITE = join(ROOT, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');
/** The scenarios that do not pass, with their reasons. The suite fails when one of them passes, too. */
const BASELINE = join(ROOT, 'test/fixtures/mcp/server-baseline.yaml');

/** The tools that the scenarios call, as an agent makes them. */
const TOOLS = [
  {
    name: 'test_simple_text',
    description: 'Gives a text.',
    inputSchema: { type: 'object', properties: {} },
    outputSchema: { type: 'string' },
    code: "function execute() { return 'This is a simple text response for testing.'; }",
    testCases: [{ input: {}, expectedOutput: 'This is a simple text response for testing.' }],
  },
  {
    name: 'test_error_handling',
    description: 'Fails without `works`.',
    inputSchema: { type: 'object', properties: { works: { type: 'boolean' } } },
    outputSchema: { type: 'string' },
    code: "function execute(input) { if (input.works !== true) throw new Error('This tool intentionally returns an error for testing'); return 'fine'; }",
    testCases: [{ input: { works: true }, expectedOutput: 'fine' }],
  },
  {
    name: 'json_schema_2020_12_tool',
    description: 'Has keywords of JSON Schema 2020-12.',
    inputSchema: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      $defs: {
        address: { type: 'object', properties: { street: { type: 'string' }, city: { type: 'string' } } },
      },
      properties: { name: { type: 'string' }, address: { $ref: '#/$defs/address' } },
      additionalProperties: false,
    },
    outputSchema: { type: 'string' },
    code: "function execute(input) { return 'Hello ' + (input.name || 'you'); }",
    testCases: [{ input: { name: 'Kim' }, expectedOutput: 'Hello Kim' }],
  },
];

const SCRIPT = doublingScript(`  - when: {lastUser: "prepare", turn: 1}
    answer: {toolCalls: ${JSON.stringify(TOOLS.map((tool) => ({ name: 'forge_tool', arguments: tool })))}}
`);

describe('temper mcp serve', () => {
  it('the official conformance suite passes in every scenario that the baseline does not name', async () => {
    await using project = await openProject({ manifests: doublingAgent(['file_*']), script: SCRIPT }, 'json');
    const forged = await project.run('--session', 'conformance', '-m', 'please prepare').ended;
    assert.equal(forged.code, 0, forged.stderr);
    const served = startTemper([...SERVE, '--session', 'conformance'], { cwd: project.path, keepOpen: true });
    try {
      await using bridge = await bridgeTo(served.child);
      const args = [SUITE, 'server', '--url', bridge.url, '--suite', 'all', '--expected-failures', BASELINE];
      const options = { cwd: project.path, env: plainEnvironment(), timeout: 120_000 };
      const { stdout } = await promisify(execFile)(process.execPath, args, options).catch((error: unknown) => {
        const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
        throw new Error(stripVTControlCharacters(`${stdout}\n${stderr}`).slice(-6_000));
      });
      assert.match(stripVTControlCharacters(stdout), /tools-call-simple-text: 1 passed, 0 failed/);
    } finally {
      served.child.stdin?.end();
    }
    const { code } = await served.ended;
    assert.equal(code, 0);
  });
});
