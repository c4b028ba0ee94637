import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { isTemperError } from '../../lib/errors.ts';
import type { JsonObject } from '../../lib/json.ts';
import { createModelEndpoint, type FetchHandler } from '../endpoint/model-endpoint.ts';
import { ProgramHome } from '../../sandbox/confined/program-home.ts';
import { AgentProcess } from '../process/agent-process.ts';
import type { AgentProgram } from '../process/agent-command.ts';
import { serveFetchChannel } from '../process/fetch-channel.ts';
import { AgentSession, type PromptHost } from './agent-session.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const FIXTURE: AgentProgram = {
  name: 'fixture',
  folder: ROOT,
  program: join(ROOT, 'test/fixtures/acp-agent/agent.ts'),
  arguments: [],
  environment: {},
};

const model = createModelEndpoint(
  async function* () {
    yield { type: 'text', text: 'from the model' };
    yield {
      type: 'end',
      stopReason: 'stop',
      usage: { inputTokens: 1, outputTokens: 1, cachedInputTokens: 0 },
      model: 'a/b',
    };
  },
  () => 'id',
);
/** The tool server, without the protocol: the fixture only needs that its client connects. */
const { createToolServer } = await import('../../mcp/server/tool-server.ts');
const tools = createToolServer({ list: async () => [], call: async () => ({ text: '', isError: false }) });
const handler: FetchHandler = (request) => (new URL(request.url).pathname === '/mcp' ? tools(request) : model(request));

const never = new AbortController().signal;

async function open(program = FIXTURE): Promise<AgentSession> {
  const process = await AgentProcess.start(program, await ProgramHome.create());
  serveFetchChannel(process.requests, handler, (reason) => process.kill(reason));
  return AgentSession.open(process, never, { cancelTimeoutMs: 300 });
}

class RecordingHost implements PromptHost {
  said = '';
  readonly calls: [string, JsonObject][] = [];
  say(text: string): void {
    this.said += text;
  }
  think(): void {}
  async offered(): Promise<string[]> {
    return ['file_read'];
  }
  async call(name: string, input: JsonObject): Promise<{ text: string; isError: boolean }> {
    this.calls.push([name, input]);
    if (name === 'file_read') return { text: JSON.stringify({ text: 'hello' }), isError: false };
    return { text: 'TEMPER_POLICY_DENIED: file_write is not granted', isError: true };
  }
}

describe('the session of an agent program', () => {
  let session: AgentSession;
  before(async () => {
    session = await open();
  });
  after(() => session.process[Symbol.asyncDispose]());

  async function ask(text: string): Promise<RecordingHost> {
    const host = new RecordingHost();
    assert.equal(await session.prompt(text, host, never), 'end_turn');
    return host;
  }

  it("an agent on the SDK answers with the words of the endpoint's model", async () => {
    assert.equal((await ask('hi')).said, 'from the model');
  });

  it('file requests become calls of the file tools, below the working folder only', async () => {
    const read = await ask('!read');
    assert.deepEqual([read.said, read.calls], ['hello', [['file_read', { path: 'note.txt' }]]]);
    const write = await ask('!write');
    assert.deepEqual(write.calls, [['file_write', { path: 'new.txt', text: 'n' }]]);
    assert.notEqual(write.said, 'works');
    const outside = await ask('!outside');
    assert.notEqual(outside.said, 'works');
    assert.deepEqual(outside.calls, []);
  });

  it('a terminal is refused, and a question for permission is answered by what the agent may call', async () => {
    assert.notEqual((await ask('!terminal')).said, 'works');
    assert.equal((await ask('!permission')).said, 'yes no');
  });

  it('the process has no network, no processes, no files of others and no environment', async () => {
    const { said } = await ask('!probe');
    const found = JSON.parse(said) as Record<string, string>;
    const { environment = '', home, fetch: fetched, ...others } = found;
    // Some shells set PWD.
    assert.equal(
      environment.replace('PWD ', ''),
      'ANTHROPIC_API_KEY ANTHROPIC_BASE_URL HOME OPENAI_API_KEY OPENAI_BASE_URL TMPDIR',
    );
    assert.match(fetched ?? '', /reaches http:\/\/temper\.internal only/);
    assert.deepEqual(others, {
      socket: 'ERR_ACCESS_DENIED',
      process: 'ERR_ACCESS_DENIED',
      read: 'ENOENT',
      write: 'ERR_ACCESS_DENIED',
      exists: 'false',
    });
    assert.equal(home, 'works');
  });
});

describe('the end of an agent program', () => {
  it('a program that crashes fails its prompt by name, and its home is removed', async () => {
    const session = await open();
    const failed = session.prompt('!crash', new RecordingHost(), never);
    await assert.rejects(
      failed,
      (error) => isTemperError(error, 'TEMPER_ACP_AGENT_FAILED') && /exit code 7/.test(error.message),
    );
    const home = dirname(session.process.folder);
    assert.ok(existsSync(home));
    await session.process[Symbol.asyncDispose]();
    assert.ok(!existsSync(home));
  });

  it('a program that sends an endless line is ended', async () => {
    const session = await open();
    await assert.rejects(session.prompt('!flood', new RecordingHost(), never), failure);
    await session.process[Symbol.asyncDispose]();
  });

  it('a program that does not end a cancelled prompt is ended', { timeout: 300_000 }, async () => {
    const session = await open();
    const controller = new AbortController();
    const hanging = session.prompt('!hang', new RecordingHost(), controller.signal);
    controller.abort(new Error('cancelled'));
    await assert.rejects(hanging, failure);
    await session.process.exited;
    await session.process[Symbol.asyncDispose]();
  });

  it('a program that has no MCP over HTTP, is no program or writes no protocol does not start', async () => {
    for (const [change, message] of [
      [{ arguments: ['without-mcp'] }, /mcpCapabilities\.http/],
      [{ program: join(ROOT, 'none.mjs') }, /exited|closed/],
    ] as const) {
      await assert.rejects(
        open({ ...FIXTURE, ...change }),
        (error) => failure(error) && message.test((error as Error).message),
      );
    }
  });
});

function failure(error: unknown): boolean {
  return isTemperError(error, 'TEMPER_ACP_AGENT_FAILED');
}
