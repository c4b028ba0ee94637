import {
  type CallToolResult,
  createMcpHandler,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { isJsonObject, type Json } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import { serveResources } from './resource-requests.ts';
import type { ServedCall, ServedResult, ServedToClient, ServedTools } from './served.ts';
import { toolDescription } from './tool-description.ts';

const MAX_BODY_BYTES = 4 * 1_024 * 1_024;
/** Calls of one client at the same time. */
const MAX_CALLS = 16;
/** Progress notifications of one call. */
const MAX_REPORTS = 1_000;
const MAX_REPORT = 2_000;

/** Serves tools over the Model Context Protocol (Streamable HTTP, each request alone), to a program that Temper does not trust. */
export function createToolServer(
  tools: ServedTools,
  rest: Pick<ServedToClient, 'resources'> = {},
): (request: Request) => Promise<Response> {
  const handler = createMcpHandler(() => createServer({ tools, ...rest }), {
    legacy: 'stateless',
    maxSubscriptions: 0,
    maxRequestBodySize: MAX_BODY_BYTES,
  });
  return (request) => handler.fetch(request);
}

/** The protocol side of one client: the requests of the protocol, and what Temper answers. */
export function createServer(served: ServedToClient): Server {
  const { tools, resources, instructions, onToolsChange, version = '1' } = served;
  const server = new Server(
    { name: 'temper', version },
    {
      capabilities: {
        tools: onToolsChange === undefined ? {} : { listChanged: true },
        ...(resources === undefined ? {} : { resources: {} }),
      },
      ...(instructions === undefined ? {} : { instructions }),
    },
  );
  let calls = 0;
  server.setRequestHandler('tools/list', async () => ({ tools: (await tools.list()).map(toolDescription) }));
  server.setRequestHandler('tools/call', async ({ params }, context) => {
    if (calls >= MAX_CALLS) return callResult(tooManyCalls());
    calls += 1;
    try {
      const input = (params.arguments ?? {}) as Json;
      return callResult(await tools.call(params.name, isJsonObject(input) ? input : {}, servedCall(context)));
    } finally {
      calls -= 1;
    }
  });
  if (resources !== undefined) serveResources(server, resources);
  if (onToolsChange !== undefined) {
    server.onclose = onToolsChange(() => {
      // The client may have left.
      server.sendToolListChanged().catch(() => undefined);
    });
  }
  return server;
}

function servedCall({ mcpReq }: ServerContext): ServedCall {
  const progressToken = mcpReq._meta?.progressToken;
  let reports = 0;
  return {
    signal: mcpReq.signal,
    report(message) {
      if (progressToken === undefined || reports >= MAX_REPORTS || mcpReq.signal.aborted) return;
      reports += 1;
      const params = { progressToken, progress: reports, message: printable(message, MAX_REPORT) };
      mcpReq.notify({ method: 'notifications/progress', params }).catch(() => undefined);
    },
  };
}

/** A tool that does not exist is an error of the request; everything else is a result that the model of the client can read. */
function callResult({ text, isError, structured, code, rule, approvalRequest }: ServedResult): CallToolResult {
  if (code === 'TEMPER_TOOL_NOT_FOUND') throw new ProtocolError(ProtocolErrorCode.InvalidParams, text);
  const details = Object.entries({ code, rule, approvalRequest }).filter(([, value]) => value !== undefined);
  return {
    content: [{ type: 'text', text }],
    isError,
    ...(structured === undefined ? {} : { structuredContent: structured }),
    ...(details.length === 0
      ? {}
      : { _meta: Object.fromEntries(details.map(([name, value]) => [`temper.dev/${name}`, value])) }),
  };
}

function tooManyCalls(): ServedResult {
  const code = 'TEMPER_RATE_LIMITED';
  return { text: `${code}: ${MAX_CALLS} calls are in work; wait for one of them`, isError: true, code };
}
