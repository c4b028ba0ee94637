import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { it } from 'node:test';
import { TEXT_SYSTEM } from '../../../../src/agent/tools/generate-text.ts';
import type { SessionStreamLine, UserMessageReceipt } from '../../../../src/gateway-api/user-api.ts';
import { readBody } from '../../../../src/lib/async/read-body.ts';
import { anArtifact } from '../../../../src/tempering/tempering.testing.ts';
import { EmergentTools } from '../../../support/gateway/emergent-tools.ts';
import type { GatewayFixture } from '../../../support/gateway/gateway-fixture.ts';
import { poll } from '../../../support/poll.ts';

interface ChatRequest {
  messages: { role: string; content?: string }[];
  tools?: { function: { name: string } }[];
}

/** A model that calls the tool that the user names, and whose texts for a tool come when a test releases them. */
export interface HeldModel extends AsyncDisposable {
  readonly url: string;
  /** The prompts of texts that tools wait for, in the order in which they came. */
  readonly held: readonly string[];
  /** The names of the tools in the last request of an agent. */
  readonly offered: readonly string[];
  release(): void;
}

export async function startHeldModel(): Promise<HeldModel> {
  const held: string[] = [];
  const waiting = new Set<() => void>();
  let offered: string[] = [];
  const deltaFor = async ({ messages, tools = [] }: ChatRequest): Promise<object> => {
    const last = messages.at(-1);
    if (messages[0]?.content === TEXT_SYSTEM) {
      const released = new Promise<void>((resolve) => waiting.add(resolve));
      held.push(last?.content ?? '');
      await released;
      return { content: 'the held text' };
    }
    offered = tools.map(({ function: { name } }) => name);
    if (last?.role !== 'user') return { content: last?.content ?? '' };
    const call = { index: 0, id: 'c1', type: 'function', function: { name: last.content, arguments: '{"topic":"x"}' } };
    return { tool_calls: [call] };
  };
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = JSON.parse(await readBody(request, 1_000_000, () => new Error('too large'))) as ChatRequest;
    const delta = await deltaFor(body);
    const choice = { index: 0, delta, finish_reason: 'tool_calls' in delta ? 'tool_calls' : 'stop' };
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(`data: ${JSON.stringify({ model: 'm', choices: [choice] })}\n\ndata: [DONE]\n\n`);
  };
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => response.destroy(error as Error));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const release = (): void => {
    for (const resolve of waiting) resolve();
    waiting.clear();
  };
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    held,
    get offered() {
      return offered;
    },
    release,
    async [Symbol.asyncDispose]() {
      release();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

interface RunningCallSetup {
  fixture: GatewayFixture;
  model: HeldModel;
  /** Lets the agent use the held model and `generate_text`, under this rule. */
  prepare: (runningCalls: 'End' | undefined) => Promise<void>;
  /** The names of the forged tools that the gateway of the pod gives to the agent. */
  toolNames: () => Promise<string[]>;
  start: () => { end: (signal: NodeJS.Signals) => Promise<number | null>; log: string };
  send: (text: string) => Promise<UserMessageReceipt>;
  follow: (receipt: UserMessageReceipt) => Promise<SessionStreamLine[]>;
}

const textTool = (name: string) =>
  anArtifact(name, {
    description: 'Writes about a topic.',
    inputSchema: '{"properties":{"topic":{"type":"string"}},"required":["topic"],"type":"object"}',
    outputSchema: '{"properties":{"text":{"type":"string"}},"required":["text"],"type":"object"}',
    implementation: {
      mode: 'Compose',
      steps: [{ name: 'write', tool: 'generate_text', inputMapping: '{"prompt":"$input.topic"}' }],
    },
    tests: [{ input: '{"topic":"x"}' }],
    limits: { duration: '60s', memory: '64Mi' },
  });

/** A call in a pod whose tool is revoked while it runs. */
export function runningCallTests(setup: () => RunningCallSetup): void {
  const cases = [
    { name: 'sum_finished', runningCalls: undefined, code: undefined },
    { name: 'sum_ended', runningCalls: 'End', code: 'TEMPER_TOOL_DEMOTED' },
  ] as const;
  for (const { name, runningCalls, code } of cases) {
    const ends = code === undefined ? 'finishes' : `ends with ${code} where the policy says so`;
    it(`a call in a pod whose tool is revoked while it runs ${ends}, and no later call has the tool`, async () => {
      const { fixture, model, prepare, toolNames, start, send, follow } = setup();
      const artifact = textTool(name);
      const tools = new EmergentTools(fixture, 'team-a');
      await tools.create(artifact);
      await prepare(runningCalls);
      await poll('the tool of the agent', async () => (await toolNames()).includes(name));
      const agent = start();
      const calls = model.held.length;
      const receipt = await send(name);
      const following = follow(receipt);
      await poll('the running call', async () => model.held.length > calls);
      assert.ok(model.offered.includes(name));
      const listed = () => fixture.logLines.filter((line) => isToolList(line)).length;
      const before = listed();
      await tools.decide(artifact, 'Revoke');
      await poll('the pod to list its tools again', async () => listed() > before);
      // No call waits any more for the text of one that has ended.
      if (code === undefined) model.release();
      const lines = await following;
      model.release();
      const results = lines.flatMap((line) =>
        line.kind === 'event' && line.event.type === 'tool-result' && line.event.tool === name ? [line.event] : [],
      );
      assert.deepEqual(
        results.map((result) => [result.ok, result.code]),
        [[code === undefined, code]],
      );
      assert.ok(!model.offered.includes(name), 'the next request of the model has the revoked tool');
      assert.equal(await agent.end('SIGTERM'), 0, agent.log);
    });
  }
}

function isToolList(line: string): boolean {
  const { message, method, route } = JSON.parse(line) as { message?: string; method?: string; route?: string };
  return (
    message === 'request' && method === 'GET' && route?.endsWith('/tools') === true && route.startsWith('/v1/sessions/')
  );
}
