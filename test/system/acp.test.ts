import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { describe, it } from 'node:test';
import {
  client,
  type ClientContext,
  type InitializeRequest,
  methods,
  ndJsonStream,
  PROTOCOL_VERSION,
  type PromptRequest,
  RequestError,
  type RequestPermissionRequest,
  type SessionUpdate,
} from '@agentclientprotocol/sdk';
import { pollAssertion } from '../support/poll.ts';
import { plainEnvironment, ROOT } from './command.ts';
import { doublingAgent, doublingScript } from './doubling-agent.ts';
import { openProject } from './project.ts';

const SCRIPT = doublingScript(`  - when: {lastUser: "read", turn: 1}
    answer: {text: "I look.", toolCalls: [{id: text, name: file_read, arguments: {path: note.txt}}]}
  - when: {lastUser: "read", lastTool: {isError: true}}
    answer: {text: "Refused: {{lastTool.error.code}}"}
  - when: {lastUser: "read", turn: 2}
    answer: {text: "It says {{toolCall.text.text}}"}
  - when: {lastUser: "thanks"}
    answer: {text: "Done."}
  - when: {lastUser: "wait"}
    answer: {text: "late", delayMilliseconds: 60000}
`);

interface Editor {
  agent: ClientContext;
  /** The working folder of the agent. */
  path: string;
  updates: SessionUpdate[];
  asked: RequestPermissionRequest[];
}

/** Runs `work` as an editor with the SDK's own client, connected to `temper acp` as a process. */
async function asEditor(
  { policy = '', answer = 'approve' }: { policy?: string; answer?: string },
  work: (editor: Editor) => Promise<void>,
): Promise<void> {
  await using project = await openProject({ manifests: doublingAgent(['file_*'], policy), script: SCRIPT }, 'json');
  const child = spawn(join(ROOT, 'bin/temper'), ['acp', '-f', 'agent.yaml', '--model-script', 'script.yaml'], {
    cwd: project.path,
    env: plainEnvironment(),
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const closed = once(child, 'close');
  const [updates, asked]: [SessionUpdate[], RequestPermissionRequest[]] = [[], []];
  try {
    const stream = ndJsonStream(
      Writable.toWeb(child.stdin),
      Readable.toWeb(child.stdout) as unknown as ReadableStream<Uint8Array>,
    );
    await client({ name: 'editor' })
      .onNotification(methods.client.session.update, ({ params }) => void updates.push(params.update))
      .onRequest(methods.client.session.requestPermission, ({ params }) => {
        asked.push(params);
        return { outcome: { outcome: 'selected', optionId: answer } };
      })
      .connectWith(stream, (agent) => work({ agent, path: project.path, updates, asked }));
    child.stdin.end();
    assert.deepEqual(await closed, [0, null]);
  } finally {
    child.kill('SIGKILL');
  }
}

const CLIENT: InitializeRequest = { protocolVersion: PROTOCOL_VERSION, clientCapabilities: {} };

async function openSession({ agent, path }: Editor): Promise<(text: string) => Promise<string>> {
  await agent.request(methods.agent.initialize, CLIENT);
  const { sessionId } = await agent.request(methods.agent.session.new, { cwd: path, mcpServers: [] });
  return async (text) => {
    const prompt: PromptRequest['prompt'] = [{ type: 'text', text }];
    return (await agent.request(methods.agent.session.prompt, { sessionId, prompt })).stopReason;
  };
}

function said(updates: SessionUpdate[]): string {
  return updates
    .flatMap((update) =>
      update.sessionUpdate === 'agent_message_chunk' && update.content.type === 'text' ? [update.content.text] : [],
    )
    .join('');
}

describe('temper acp', () => {
  it('an editor sees the words and the calls of the agent, each once and in order', async () => {
    await asEditor({}, async (editor) => {
      const { agent, updates } = editor;
      const { agentInfo, agentCapabilities } = await agent.request(methods.agent.initialize, CLIENT);
      assert.deepEqual([agentInfo?.name, agentCapabilities?.loadSession], ['temper', false]);
      const prompt = await openSession(editor);
      assert.equal(await prompt('please read'), 'end_turn');
      assert.equal(said(updates), 'I look.It says hello');
      const kinds = updates.map(({ sessionUpdate }) => sessionUpdate).filter((kind) => kind.startsWith('tool'));
      assert.deepEqual(kinds, ['tool_call', 'tool_call_update']);
      const call = updates.find(({ sessionUpdate }) => sessionUpdate === 'tool_call');
      assert.ok(call?.sessionUpdate === 'tool_call' && call.title === 'file_read' && call.kind === 'read');
      assert.equal(await prompt('thanks'), 'end_turn');
      assert.match(said(updates), /Done\.$/);
    });
  });

  for (const [answer, reply] of [
    ['approve', 'It says hello'],
    ['deny', 'Refused: TEMPER_APPROVAL_DENIED'],
  ] as const) {
    it(`an editor whose user chooses ${answer} decides about a call that needs an approval`, async () => {
      await asEditor({ policy: '  rules: {requireApproval: ["code:read"]}\n', answer }, async (editor) => {
        const prompt = await openSession(editor);
        assert.equal(await prompt('please read'), 'end_turn');
        const [question] = editor.asked;
        assert.match(question?.toolCall.title ?? '', /^file_read \(risk /);
        assert.deepEqual(question?.toolCall.rawInput, { path: 'note.txt' });
        assert.ok(said(editor.updates).endsWith(reply), said(editor.updates));
      });
    });
  }

  it('a prompt that the editor cancels ends, and the session takes another one', async () => {
    await asEditor({}, async (editor) => {
      const { agent, path } = editor;
      await agent.request(methods.agent.initialize, CLIENT);
      const { sessionId } = await agent.request(methods.agent.session.new, { cwd: path, mcpServers: [] });
      const ask = (text: string) =>
        agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: 'text', text }] });
      const cancelled = ask('wait');
      const queued = ask('thanks');
      await agent.notify(methods.agent.session.cancel, { sessionId });
      assert.deepEqual([(await cancelled).stopReason, (await queued).stopReason], ['cancelled', 'cancelled']);
      assert.equal((await ask('thanks')).stopReason, 'end_turn');
      await pollAssertion('the reply', () => assert.match(said(editor.updates), /Done\./));
    });
  });

  it('a session in another folder, an unknown session and an image are refused by name', async () => {
    await asEditor({}, async ({ agent, path }) => {
      await agent.request(methods.agent.initialize, CLIENT);
      const elsewhere = agent.request(methods.agent.session.new, { cwd: '/', mcpServers: [] });
      await assert.rejects(elsewhere, refusal(/start it with --workspace/));
      const { sessionId } = await agent.request(methods.agent.session.new, { cwd: path, mcpServers: [] });
      const send = (session: string, prompt: Parameters<typeof promptOf>[1]) =>
        agent.request(methods.agent.session.prompt, promptOf(session, prompt));
      await assert.rejects(send('s-9', [{ type: 'text', text: 'hi' }]), refusal(/no such session/));
      await assert.rejects(send(sessionId, []), refusal(/no text/));
      const image = { type: 'image' as const, data: '', mimeType: 'image/png' };
      await assert.rejects(send(sessionId, [image]), refusal(/prompt\[0\] is of type image/));
    });
  });
});

type PromptBlock = { type: 'text'; text: string } | { type: 'image'; data: string; mimeType: string };

function promptOf(sessionId: string, prompt: PromptBlock[]) {
  return { sessionId, prompt };
}

function refusal(message: RegExp): (error: unknown) => boolean {
  return (error) => error instanceof RequestError && message.test(error.message);
}
