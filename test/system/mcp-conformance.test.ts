import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { parse } from 'yaml';
import {
  clientScenarios,
  CONFORMANCE_TOOLS,
  runConformance,
  TIMED_SCENARIOS,
  timedScenarios,
} from '../support/mcp/conformance.ts';
import { plainEnvironment, ROOT, startTemper } from './command.ts';
import { doublingAgent, doublingScript } from './doubling-agent.ts';
import { bridgeTo } from './http-bridge.ts';
import { SERVE } from './mcp-client.ts';
import { openProject } from './project.ts';

/** The scenarios that do not pass, with their reasons. */
const BASELINE = join(ROOT, 'test/fixtures/mcp/conformance-baseline.yaml');

const CLIENT = join(ROOT, 'test/fixtures/mcp/conformance-client.ts');

const SCRIPT = doublingScript(`  - when: {lastUser: "prepare", turn: 1}
    answer: {toolCalls: ${JSON.stringify(CONFORMANCE_TOOLS.map((tool) => ({ name: 'forge_tool', arguments: tool })))}}
`);

const suite = (args: readonly string[], cwd = ROOT) => runConformance(args, { cwd, env: plainEnvironment() });

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
    const { client } = parse(await readFile(BASELINE, 'utf8')) as { client: string[] };
    assert.deepEqual([...scenarios, ...TIMED_SCENARIOS, ...client].sort(), (await clientScenarios()).sort());
  });

  const passes = async (scenario: string): Promise<void> => {
    const command = `${process.execPath} ${CLIENT}`;
    await suite(['client', '--command', command, '--scenario', scenario, '--timeout', '240000']);
  };

  for (const scenario of scenarios)
    it(`a server that a user configured and accepted passes the scenario ${scenario}`, () => passes(scenario));

  for (const scenario of timedScenarios())
    it(`a server that a user configured and accepted passes the timed scenario ${scenario}`, () => passes(scenario));
});
