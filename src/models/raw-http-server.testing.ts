import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { systemClock } from '../lib/clock.ts';
import type { CallOptions } from '../lib/call-options.ts';
import type { AdapterOptions } from './adapter/adapter.ts';
import { anthropicModel } from './anthropic/adapter.ts';
import { openaiChatModel } from './openai-chat/adapter.ts';
import { openaiResponsesModel } from './openai-responses/adapter.ts';
import { type ModelPipeline, withNames } from './pipeline.ts';
import { aModel } from './pipeline.testing.ts';
import type { Model, ModelEvent, ModelRequest } from './port.ts';

export type Respond = (request: IncomingMessage, response: ServerResponse) => void;

/** A real HTTP server on the loopback interface that handles every request with `respond`. */
export async function rawHttpServer(respond: Respond): Promise<{ url: string } & AsyncDisposable> {
  const server = createServer((request, response) => {
    request.resume();
    request.once('end', () => respond(request, response));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
}

export const WIRES = ['openai-chat', 'openai-responses', 'anthropic-messages'] as const;
export type WireName = (typeof WIRES)[number];

/** The adapter of a wire format, with its official SDK, for a server at `url`. */
export function modelOver(wire: WireName, url: string, options: Partial<AdapterOptions> = {}): Model {
  const shared = { provider: 'test', key: async () => 'test-key-1234', clock: systemClock, ...options };
  const adapters: Record<WireName, () => ModelPipeline> = {
    'anthropic-messages': () => anthropicModel({ ...shared, baseUrl: url }),
    'openai-responses': () => openaiResponsesModel({ ...shared, baseUrl: `${url}/v1` }),
    'openai-chat': () => openaiChatModel({ ...shared, baseUrl: `${url}/v1`, dialect: 'original' }),
  };
  return withNames(adapters[wire](), aModel);
}

export function aRequest(changes: Partial<ModelRequest> = {}): ModelRequest {
  return {
    model: 'test/model',
    system: 'be brief',
    messages: [{ role: 'user', text: 'hello' }],
    tools: [],
    maxOutputTokens: 1_000,
    ...changes,
  };
}

export function anOp(milliseconds = 30_000, signal: AbortSignal = new AbortController().signal): CallOptions {
  return { signal, deadline: systemClock.monotonic() + milliseconds, key: 'op' };
}

export async function eventsOf(stream: AsyncIterable<ModelEvent>): Promise<ModelEvent[]> {
  const events: ModelEvent[] = [];
  for await (const event of stream) events.push(event);
  return events;
}

/** The concatenated text events. */
export function textOf(events: readonly ModelEvent[]): string {
  return events.map((event) => (event.type === 'text' ? event.text : '')).join('');
}

export function callsOf(events: readonly ModelEvent[]): { name: string; arguments: unknown }[] {
  return events.flatMap((event) =>
    event.type === 'tool-call'
      ? [{ name: event.call.name, arguments: JSON.parse(event.call.arguments) as unknown }]
      : [],
  );
}
