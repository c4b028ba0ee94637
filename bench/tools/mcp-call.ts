import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { callOptions } from '../../test/support/call-options.ts';
import { said, TestServer } from '../../src/gateway/capabilities/mcp/mcp-server.testing.ts';
import { callMcpTool, type McpTool } from '../../src/gateway/capabilities/mcp/mcp-tool.ts';
import { platformEndpoint } from '../../src/gateway/capabilities/mcp/platform-server.ts';
import type { GatewaySession } from '../../src/gateway/capabilities/mcp/gateway-session.ts';
import { SessionPool } from '../../src/gateway/capabilities/mcp/session-pool.ts';
import { OAuthTokens } from '../../src/gateway/capabilities/oauth-tokens.ts';
import { DELIVERY } from '../../src/gateway/capabilities/tunnels.testing.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { pinnedDigest, readListedTools } from '../../src/mcp/client/tools/listed-tool.ts';
import type { BenchRow } from '../row.ts';

const TOOL = { name: 'find', description: 'Finds.', inputSchema: { type: 'object' } };
const WARM_UP = 200;
const CALLS = 1_000;
/** Of the p50 of a request with the same text to the same server. */
const MAX_RATIO = 4;
const GOAL_MS = 5;

/** A call of a tool of an MCP server in an open session of a gateway, beside a request with the same text. */
export async function benchMcpCall(): Promise<BenchRow[]> {
  const server = new TestServer();
  server.tools = [TOOL];
  const http = createServer(server.handler).listen(0, '127.0.0.1');
  await once(http, 'listening');
  const stop = new AbortController();
  try {
    return [await measure(`http://localhost:${(http.address() as AddressInfo).port}/mcp`, server, stop.signal)];
  } finally {
    stop.abort(new Error('the measurement is over'));
    http.closeAllConnections();
    http.close();
  }
}

async function measure(url: string, server: TestServer, stopped: AbortSignal): Promise<BenchRow> {
  const [listed] = readListedTools({ name: 'bench', isElsewhere: false, isOfCapability: true }, [TOOL]).tools;
  if (listed === undefined) throw new Error('the tool is refused');
  const tool: McpTool = {
    name: 'find',
    kind: 'mcp',
    backend: { server: 'bench', digest: pinnedDigest(listed) },
    ...platformEndpoint({ name: 'bench', url: new URL(url) }, 'team-a'),
  };
  const sessions = new SessionPool<GatewaySession>(systemClock, stopped);
  const files = {
    current: async () => {
      throw new Error('no egress proxy takes part');
    },
  };
  const tokens = new OAuthTokens({ files, deliveryTokens: { sign: () => '' }, clock: systemClock });
  const call = () => callMcpTool(tool, {}, DELIVERY, { sessions, tokens, clock: systemClock }, callOptions());
  const text = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'find', arguments: {} } });
  const request = async (): Promise<void> => {
    const headers = { 'content-type': 'application/json' };
    await (await fetch(url, { method: 'POST', headers, body: text })).json();
  };
  server.call = () => said('found');
  const [calls, requests]: [number[], number[]] = [[], []];
  for (let index = 0; index < WARM_UP + CALLS; index += 1) {
    const [ofCall, ofRequest] = [await timed(call), await timed(request)];
    if (index >= WARM_UP) {
      calls.push(ofCall);
      requests.push(ofRequest);
    }
  }
  return rowOf(middle(calls), middle(requests));
}

function rowOf(call: number, request: number): BenchRow {
  const shown = (milliseconds: number): string => `${milliseconds.toFixed(2)} ms`;
  const ratio = call / request;
  return {
    name: 'a call of an MCP tool by a gateway, in an open session, without a proxy',
    figures: {
      'p50 of a call': shown(call),
      'p50 of a request': shown(request),
      'own overhead': `${shown(call - request)} (goal ${GOAL_MS} ms)`,
      ratio: ratio.toFixed(2),
    },
    limit: `at most ${MAX_RATIO} times the request`,
    met: ratio <= MAX_RATIO,
  };
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

function middle(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
