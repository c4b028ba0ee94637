import assert from 'node:assert/strict';
import { it } from 'node:test';
import { resolve } from 'node:path';
import type { Client } from '@modelcontextprotocol/client';
import type { SessionStreamLine } from '../../../../src/gateway-api/user-api.ts';
import { canonicalJson } from '../../../../src/lib/canonical.ts';
import { anArtifact } from '../../../../src/tempering/tempering.testing.ts';
import { EmergentTools } from '../../../support/gateway/emergent-tools.ts';
import { forwardTo } from '../../../support/gateway/loopback-forwarder.ts';
import { connectMcpClient } from '../../../support/gateway/mcp-client.ts';
import { CONFORMANCE_TOOLS, runConformance } from '../../../support/mcp/conformance.ts';
import { pollValue } from '../../../support/poll.ts';
import type { ClientCallSetup } from './client-calls.ts';

/** The scenarios that the endpoint does not pass, with their reasons. */
const BASELINE = resolve(import.meta.dirname, '../../../fixtures/mcp/conformance-gateway-baseline.yaml');
const TIMEOUT = { timeout: 240_000 };
const PATH = '/v1/users/namespaces/team-a/agents/analyst/mcp';

/** The MCP endpoint of a gateway as the protocol describes it. The agent is a process. */
export function mcpConformanceTests(open: () => ClientCallSetup): void {
  it('the MCP endpoint passes every scenario of the official conformance suite that the baseline does not name', async (t) => {
    const setup = open();
    const { fixture, one, userToken } = setup;
    const tools = new EmergentTools(fixture, 'team-a');
    for (const { name, description, inputSchema, outputSchema, code, testCases } of CONFORMANCE_TOOLS)
      await tools.create(
        anArtifact(name, {
          description,
          inputSchema: canonicalJson(inputSchema),
          outputSchema: canonicalJson(outputSchema),
          implementation: { mode: 'Sandbox', source: code },
          tests: testCases.map(({ input, expectedOutput }) => ({
            input: canonicalJson(input),
            expectedOutput: canonicalJson(expectedOutput),
          })),
        }),
      );
    const agent = setup.start();
    t.after(() => agent.end('SIGKILL'));
    const client = await connectMcpClient(one.port, userToken, 'analyst');
    const names = CONFORMANCE_TOOLS.map(({ name }) => name);
    await pollValue(
      'the tools of the suite',
      async () => (await client.listTools()).tools.map(({ name }) => name),
      (listed) => names.every((name) => listed.includes(name)),
    );
    await client.close();
    await using forwarder = await forwardTo(one.port, { 'temper-token': userToken });
    const url = `${forwarder.origin}${PATH}`;
    const args = ['server', '--url', url, '--suite', 'all', '--expected-failures', BASELINE];
    const stdout = await runConformance(args, { cwd: fixture.folder });
    for (const scenario of ['tools-call-simple-text', 'tools-call-error', 'resources-list', 'dns-rebinding-protection'])
      assert.match(stdout, new RegExp(`${scenario}: [12] passed, 0 failed`), stdout);
    assert.equal(await agent.end('SIGTERM'), 0, agent.log);
  });

  it('what one connection calls is one session, which is a resource at every replica', async (t) => {
    const setup = open();
    const agent = setup.start();
    t.after(() => agent.end('SIGKILL'));
    const [first, second] = await Promise.all(
      [setup.one, setup.other].map(({ port }) => connectMcpClient(port, setup.userToken, 'analyst')),
    );
    assert.ok(first !== undefined && second !== undefined);
    const uriOf = (client: Client): string => `temper://sessions/${client.transport?.sessionId}`;
    const read = async (client: Client, uri: string): Promise<SessionStreamLine[]> => {
      const { contents } = await client.readResource({ uri });
      const [content] = contents;
      assert.ok(content !== undefined && 'text' in content && content.mimeType === 'application/x-ndjson');
      return content.text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as SessionStreamLine]));
    };
    for (const client of [first, first, second])
      assert.equal((await client.callTool({ name: 'test_simple_text', arguments: {} }, TIMEOUT)).isError, false);
    assert.notEqual(uriOf(first), uriOf(second));
    const newest = (await second.listResources()).resources.slice(0, 2).map(({ uri }) => uri);
    assert.deepEqual(newest, [uriOf(second), uriOf(first)]);
    const lines = await read(second, uriOf(first));
    assert.deepEqual(
      lines.flatMap((line) => (line.kind === 'event' && line.event.type === 'tool-call' ? [line.event.tool] : [])),
      ['test_simple_text', 'test_simple_text'],
    );
    assert.equal(lines.filter(({ kind }) => kind === 'reply').length, 2);
    await assert.rejects(second.readResource({ uri: 'temper://sessions/no-such' }), /no resource is named/);

    const path = `${PATH.replace('/mcp', '/sessions')}/${first.transport?.sessionId}`;
    assert.equal((await setup.one.call('DELETE', path, { userToken: setup.userToken })).status, 200);
    await assert.rejects(first.callTool({ name: 'test_simple_text', arguments: {} }), /TEMPER_NOT_FOUND/);
    await assert.rejects(second.readResource({ uri: uriOf(first) }), /no resource is named/);
    await Promise.all([first.close(), second.close()]);
    assert.equal(await agent.end('SIGTERM'), 0, agent.log);
  });
}
