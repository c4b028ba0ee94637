/** The official conformance suite of the Model Context Protocol, and the tools that its scenarios call. */
import { execFile } from 'node:child_process';
import { join, resolve } from 'node:path';
import { promisify, stripVTControlCharacters } from 'node:util';
import type { JsonObject } from '../../../src/lib/json.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const SUITE = join(ROOT, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');

interface ConformanceTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonObject;
  readonly outputSchema: JsonObject;
  readonly code: string;
  readonly testCases: readonly { readonly input: JsonObject; readonly expectedOutput: string }[];
}

/** The tools that the scenarios call, as an agent makes them. */
export const CONFORMANCE_TOOLS: readonly ConformanceTool[] = [
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

/** Runs the suite and returns its output. Throws with the end of the output when a scenario does not pass. */
export async function runConformance(
  args: readonly string[],
  options: { readonly cwd?: string; readonly env?: Readonly<Record<string, string>> },
): Promise<string> {
  const command = promisify(execFile);
  const ran = command(process.execPath, [SUITE, ...args], { ...options, timeout: 300_000 });
  const { stdout } = await ran.catch((error: unknown) => {
    const { stdout: out = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    throw new Error(stripVTControlCharacters(`${out}\n${stderr}`).slice(-6_000));
  });
  return stripVTControlCharacters(stdout);
}

/** Scenarios for clients that measure time. */
export const TIMED_SCENARIOS: readonly string[] = ['sse-retry'];

/** Those that run now: all with the variable, which `make chaos` sets for a run of each of them alone, else none. */
export function timedScenarios(): readonly string[] {
  return process.env['TIMED_SCENARIOS'] === '1' ? TIMED_SCENARIOS : [];
}

/** The names of the scenarios for clients. */
export async function clientScenarios(): Promise<string[]> {
  return (await runConformance(['list', '--client'], {})).match(/(?<=^ +- )\S+/gm) ?? [];
}
