import { createInterface } from 'node:readline';

/** An MCP server over standard input and output with one tool. It uses no library, so that this folder is all that it loads. */

const WEIGHTS: ReadonlyMap<unknown, number> = new Map([
  ['anvil', 100],
  ['hammer', 2],
]);

const WEIGH = {
  name: 'weigh',
  description: 'The weight of a thing.',
  inputSchema: { type: 'object', properties: { thing: { type: 'string' } }, required: ['thing'] },
  annotations: { readOnlyHint: true, openWorldHint: false },
};

interface Message {
  id?: number | string;
  method: string;
  params?: { name?: string; arguments?: { thing?: unknown } };
}

const content = (text: string, isError = false): object => ({ content: [{ type: 'text', text }], isError });

function weigh(thing: unknown): object {
  const weight = WEIGHTS.get(thing);
  return weight === undefined
    ? content('This thing was never weighed.', true)
    : content(`The ${String(thing)} weighs ${weight} kg.`);
}

/** The result of a request; undefined for a method that the server does not have. */
function resultOf({ method, params }: Message): object | undefined {
  const serverInfo = { name: 'weights', version: '1.0.0' };
  if (method === 'initialize') return { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo };
  if (method === 'ping') return {};
  if (method === 'tools/list') return { tools: [WEIGH] };
  if (method === 'tools/call' && params?.name === WEIGH.name) return weigh(params.arguments?.thing);
  return undefined;
}

createInterface({ input: process.stdin }).on('line', (line) => {
  const message = JSON.parse(line) as Message;
  // A notification gets no answer.
  if (message.id === undefined) return;
  const result = resultOf(message);
  const answer = result === undefined ? { error: { code: -32_601, message: 'no such method' } } : { result };
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id: message.id, ...answer })}\n`);
});
