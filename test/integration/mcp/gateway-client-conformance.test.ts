import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { describe, it } from 'node:test';
import { parse } from 'yaml';
import { clientScenarios, runConformance, TIMED_SCENARIOS, timedScenarios } from '../../support/mcp/conformance.ts';

const FIXTURES = resolve(import.meta.dirname, '../../fixtures/mcp');
/** Those in which a server without OAuth, or one with a documented token endpoint, is called. */
const SCENARIOS = ['initialize', 'tools_call', 'auth/client-credentials-basic'];

describe('the MCP client of a gateway', () => {
  it('the baseline names each scenario of the official conformance suite that is not run', async () => {
    const text = await readFile(resolve(FIXTURES, 'conformance-gateway-baseline.yaml'), 'utf8');
    const { client } = parse(text) as { client: string[] };
    assert.deepEqual([...SCENARIOS, ...TIMED_SCENARIOS, ...client].sort(), (await clientScenarios()).sort());
  });

  const passes = async (scenario: string): Promise<void> => {
    const command = `${process.execPath} ${resolve(FIXTURES, 'conformance-gateway-client.ts')}`;
    await runConformance(['client', '--command', command, '--scenario', scenario, '--timeout', '120000'], {});
  };

  for (const scenario of SCENARIOS)
    it(`a server behind the egress proxy passes the scenario ${scenario}`, () => passes(scenario));

  for (const scenario of timedScenarios())
    it(`a server behind the egress proxy passes the timed scenario ${scenario}`, () => passes(scenario));
});
