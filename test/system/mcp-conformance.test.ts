import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { promisify, stripVTControlCharacters } from 'node:util';
import { parse } from 'yaml';
import { plainEnvironment, ROOT, startTemper } from './command.ts';
import { doublingAgent, doublingScript } from './doubling-agent.ts';
import { bridgeTo } from './http-bridge.ts';
import { SERVE } from './mcp-client.ts';
import { openProject } from './project.ts';

const SUITE = join(ROOT, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');
/** The scenarios that do not pass, with their reasons. */
const BASELINE = join(ROOT, 'test/fixtures/mcp/conformance-baseline.yaml');

const CLIENT = join(ROOT, 'test/fixtures/mcp/conformance-client.ts');

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

/** Runs the suite and returns its output. Throws with the end of the output when a scenario does not pass. */
async function suite(args: readonly string[], cwd?: string): Promise<string> {
  const options = { cwd, env: plainEnvironment(), timeout: 300_000 };
  const { stdout } = await promisify(execFile)(process.execPath, [SUITE, ...args], options).catch((error: unknown) => {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    throw new Error(stripVTControlCharacters(`${stdout}\n${stderr}`).slice(-6_000));
  });
  return stripVTControlCharacters(stdout);
}

describe('temper mcp serve', () => {
  it('the official conformance suite passes in every scenario that the baseline does not name', async () => {
    await using project = await openProject({ manifests: doublingAgent(['file_*']), script: SCRIPT }, 'json');
    const forged = await project.run('--session', 'conformance', '-m', 'please prepare').ended;
    assert.equal(forged.code, 0, forged.stderr);
    const served = startTemper([...SERVE, '--session', 'conformance'], { cwd: project.path, keepOpen: true });
    try {
      await using bridge = await bridgeTo(served.child);
      const args = ['server', '--url', bridge.url, '--suite', 'all', '--expected-failures', BASELINE];
      const stdout = await suite(args, project.path);
      assert.match(stdout, /tools-call-simple-text: 1 passed, 0 failed/);
    } finally {
      served.child.stdin?.end();
    }
    const { code } = await served.ended;
    assert.equal(code, 0);
  });
});

describe('the MCP client of temper run', () => {
  const scenarios = ['initialize', 'tools_call'];

  it('the baseline names each scenario of the official conformance suite that is not run', async () => {
    const listed = (await suite(['list', '--client'])).match(/(?<=^ +- )\S+/gm) ?? [];
    const { client } = parse(await readFile(BASELINE, 'utf8')) as { client: string[] };
    assert.deepEqual([...scenarios, ...client].sort(), [...listed].sort());
  });

  for (const scenario of scenarios)
    it(`a server that a user configured and accepted passes the scenario ${scenario}`, async () => {
      const command = `${process.execPath} ${CLIENT}`;
      await suite(['client', '--command', command, '--scenario', scenario, '--timeout', '240000']);
    });
});
