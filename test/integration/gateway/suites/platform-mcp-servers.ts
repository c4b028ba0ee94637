import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { NO_BROKERED_TOOLS } from '../../../../src/gateway/brokered/port.ts';
import type { CapabilityTools } from '../../../../src/gateway/capabilities/capability-tools.ts';
import { type CatalogObject, pruneCapability } from '../../../../src/gateway/discovery/catalog-entries.ts';
import { systemClock } from '../../../../src/lib/clock.ts';
import { isTemperError } from '../../../../src/lib/errors.ts';
import type { ErrorCode } from '../../../../src/lib/error-codes.ts';
import type { Json } from '../../../../src/lib/json.ts';
import type { BridgeProgram } from '../../../../src/mcp/bridge/bridge-program.ts';
import { serveBridge } from '../../../../src/mcp/bridge/serve.ts';
import { type ListedTool, pinnedDigest } from '../../../../src/mcp/client/tools/listed-tool.ts';
import { callBrokered, shownOutput } from '../../../support/gateway/brokered-caller.ts';
import { brokeredCapabilities, type EgressSetup, startEgressProxy } from '../../../support/gateway/egress-proxy.ts';
import { buildLauncher } from '../../../support/launcher.ts';
import { listedTools, publishedFolders } from '../../../support/mcp/published-servers.ts';
import { pollValue } from '../../../support/poll.ts';

const LINE_SERVER = join(import.meta.dirname, '../../../fixtures/mcp');
const SESSIONS = 4;

/** Servers over lines that the platform runs, called by a real gateway through the bridge of their containers. */
export function platformMcpServersSuite(open: () => EgressSetup): void {
  const skip = process.platform === 'linux' ? false : 'the launcher needs Linux';
  describe('MCP servers that the platform runs', { skip }, () => {
    const stop = new AbortController();
    const running: Promise<unknown>[] = [];
    let tools: CapabilityTools;
    let toolsOfOtherGateway: CapabilityTools;
    let connections = 0;
    let messages = 0;

    const bridge = async (name: string, program: BridgeProgram): Promise<string> => {
      const folder = join(open().fixture.folder, `bridge-${name}`);
      for (let number = 0; number < SESSIONS; number += 1)
        await mkdir(join(folder, 'homes', String(number)), { recursive: true });
      const ready = Promise.withResolvers<number>();
      const served = serveBridge({
        listen: { host: '127.0.0.1', port: 0 },
        program,
        sessions: SESSIONS,
        memoryMebibytes: 128,
        homes: join(folder, 'homes'),
        launcher: await buildLauncher(folder),
        clock: systemClock,
        log: { info: () => undefined, warn: () => undefined },
        signal: stop.signal,
        listening: ready.resolve,
      });
      served.catch(ready.reject);
      running.push(served);
      return `http://localhost:${await ready.promise}/mcp`;
    };
    const capability = (name: string, server: string, tool: ListedTool): void => {
      const { inputSchema, remoteName, action } = tool;
      const spec = {
        type: 'Tool',
        description: 'As the team describes it.',
        hasSideEffects: tool.sideEffects,
        tool: { name, category: 'file_system', action, inputSchema },
        backend: { mcp: { server, tool: remoteName, digest: pinnedDigest(tool) } },
      };
      const metadata = { name, namespace: 'team-a', uid: `uid-${name}`, generation: 1 };
      const object = pruneCapability({ metadata, spec } as unknown as CatalogObject);
      for (const gateway of [tools, toolsOfOtherGateway])
        gateway.capabilityChanged({ type: 'added', key: `team-a/${name}`, object });
    };

    before(async () => {
      const { python } = await publishedFolders();
      const lines = await bridge('lines', {
        command: 'python3',
        arguments: [join(LINE_SERVER, 'line_server.py')],
        environment: {},
        folder: LINE_SERVER,
      });
      const time = await bridge('time', {
        command: 'python3',
        arguments: ['-m', 'mcp_server_time', '--local-timezone', 'UTC'],
        environment: { PYTHONPATH: python },
        folder: python,
      });
      const proxy = await startEgressProxy(open(), () => (connections += 1), stop.signal);
      running.push(proxy.running);
      const namespaces = ['team-a'];
      const mcpServers = [
        { name: 'lines', url: lines, namespaces },
        { name: 'time', url: time, namespaces },
        { name: 'theirs', url: lines, namespaces: ['team-b'] },
        { name: 'away', url: 'http://localhost:1/mcp', namespaces },
      ];
      const options = { connections: [], mcpServers, signal: stop.signal };
      tools = brokeredCapabilities(open(), proxy, options);
      toolsOfOtherGateway = brokeredCapabilities(open(), proxy, options);
      const [trick] = await listedTools(lines, false);
      const convert = (await listedTools(time, false)).find(({ name }) => name === 'convert_time');
      assert.ok(trick !== undefined && convert !== undefined);
      for (const server of ['lines', 'theirs', 'away']) capability(`on_${server}`, server, trick);
      capability('on_time', 'time', convert);
      const { fixture } = open();
      fixture.brokered = tools;
      fixture.setPolicy('platform', { level: { initial: 'standard' }, tainted: { tools: ['on_*'] } });
    });
    after(async () => {
      open().fixture.brokered = NO_BROKERED_TOOLS;
      stop.abort(new Error('the tests are over'));
      await Promise.all(running);
    });

    const setAgent = (name: string): void => {
      open().fixture.setAgent(name, { grants: { tools: ['*'] } }, 'platform');
    };
    /** The output as text. */
    const call = async (agent: string, name: string, input: Json, session = 's1'): Promise<string> => {
      const called = { agent, name, input, session, message: `p-${(messages += 1)}` };
      return shownOutput(await callBrokered({ ...open(), tools }, called));
    };
    const attempt = (agent: string, trick: string, text = '', session = 's1') =>
      call(agent, 'on_lines', { trick, text }, session);
    const failsWith = (code: ErrorCode, work: Promise<unknown>, words: RegExp): Promise<void> =>
      assert.rejects(work, (error) => {
        assert.ok(isTemperError(error, code), String(error));
        assert.match(error.message, words);
        return true;
      });

    it('each session of each agent has a process of its own, without the egress proxy', async () => {
      setAgent('one');
      setAgent('two');
      const said = async (agent: string, session: string) =>
        /by (\d+)/.exec(await attempt(agent, 'say', '', session))?.[1];
      const first = await said('one', 's1');
      assert.equal(await said('one', 's1'), first);
      const all = [first, await said('one', 's2'), await said('two', 's1')];
      assert.equal(new Set(all).size, 3, String(all));
      await attempt('one', 'write', 'secret');
      assert.match(await attempt('one', 'read'), /secret/);
      assert.match(await attempt('two', 'read'), /refused/);
      assert.match(await attempt('two', 'network'), /refused: Operation not permitted/);
      assert.equal(connections, 0);
    });

    it('a session of an agent keeps its process when another gateway executes its call', async () => {
      setAgent('moving');
      await attempt('moving', 'write', 'kept');
      const { fixture } = open();
      fixture.brokered = toolsOfOtherGateway;
      try {
        assert.match(await attempt('moving', 'read'), /kept/);
        assert.match(await attempt('moving', 'read', '', 's2'), /refused/);
      } finally {
        fixture.brokered = tools;
      }
    });

    it('a real server from PyPI answers', async () => {
      setAgent('traveller');
      const input = { source_timezone: 'Asia/Tokyo', time: '12:00', target_timezone: 'UTC' };
      assert.match(await call('traveller', 'on_time', input), /T03:00/);
    });

    it('a server that does not run fails its call by name', async () => {
      setAgent('waiting');
      const away = call('waiting', 'on_away', {});
      await failsWith('TEMPER_MCP_SERVER_FAILED', away, /"away" of the platform cannot be reached/);
    });

    for (const trick of ['line', 'flood', 'crash'])
      it(`a server that attempts "${trick}" fails its call, and the next call opens a session`, async () => {
        setAgent(`after-${trick}`);
        await failsWith('TEMPER_MCP_SERVER_FAILED', attempt(`after-${trick}`, trick), /has ended the session/);
        assert.match(await attempt(`after-${trick}`, 'say'), /say in/);
      });

    it('a tool that the server describes differently is not called again', async () => {
      setAgent('pinned');
      await attempt('pinned', 'changed');
      await pollValue(
        'the change',
        () => attempt('pinned', 'say').then(() => '', String),
        (text) => /not the tool that its Capability pins/.test(text),
      );
    });

    it('a server of another namespace is none', () => {
      const reasons = tools.assessed('team-a').map((one) => [one.capability.name, one.unavailable?.reason]);
      assert.deepEqual(reasons, [
        ['on_away', undefined],
        ['on_lines', undefined],
        ['on_theirs', 'McpServerMissing'],
        ['on_time', undefined],
      ]);
    });
  });
}
