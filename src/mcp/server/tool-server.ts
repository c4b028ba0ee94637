import { createMcpHandler, Server, type Tool } from '@modelcontextprotocol/server';
import { isJsonObject, type Json, type JsonObject } from '../../lib/json.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';
import type { FetchHandler } from '../endpoint/model-endpoint.ts';

export interface ServedTools {
  /** The tools that the agent may call at this moment. */
  list(): Promise<readonly ToolDescriptor[]>;
  /** Makes one call with every check; never rejects for a call that failed. */
  call(name: string, input: JsonObject, signal: AbortSignal): Promise<{ text: string; isError: boolean }>;
}

const MAX_BODY_BYTES = 4 * 1_024 * 1_024;

/** Serves the tools of an agent over the Model Context Protocol (Streamable HTTP, without sessions), to a program that Temper does not trust. */
export function createToolServer(tools: ServedTools): FetchHandler {
  const handler = createMcpHandler(() => serverOf(tools), {
    legacy: 'stateless',
    maxSubscriptions: 0,
    maxRequestBodySize: MAX_BODY_BYTES,
  });
  return (request) => handler.fetch(request);
}

function serverOf(tools: ServedTools): Server {
  const server = new Server({ name: 'temper', version: '1' }, { capabilities: { tools: {} } });
  server.setRequestHandler('tools/list', async () => ({ tools: (await tools.list()).map(toolOf) }));
  server.setRequestHandler('tools/call', async ({ params }, { mcpReq }) => {
    const input = (params.arguments ?? {}) as Json;
    const { text, isError } = await tools.call(params.name, isJsonObject(input) ? input : {}, mcpReq.signal);
    return { content: [{ type: 'text', text }], isError };
  });
  return server;
}

function toolOf({ name, description, inputSchema, sideEffects }: ToolDescriptor): Tool {
  return {
    name,
    description,
    inputSchema: { ...inputSchema, type: 'object' },
    annotations: { readOnlyHint: !sideEffects },
  };
}
