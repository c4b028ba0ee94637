import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createRecordMemory } from '../agent/tools/memory.ts';
import type { AgentSpec } from '../api/v1alpha1/agent.ts';
import { systemClock } from '../lib/clock.ts';
import type { Json } from '../lib/json.ts';
import { memoryRecordStore } from '../lib/record-store.ts';
import type { ModelEvent, ModelRequest } from '../models/port.ts';
import { createSupervisor, type Supervisor } from '../sandbox/supervisor.ts';
import { anEngine, anOp, type EngineChanges } from './engine.testing.ts';

const usage = { inputTokens: 1, outputTokens: 1, cachedInputTokens: 0 };
const AGENT: Partial<AgentSpec> = {
  prompt: { system: 'You test.', context: { files: ['SOUL.md'], memory: ['self.profile'] } },
  grants: { tools: ['*'], memory: { read: ['self.*'], write: ['self.*'] } },
  forge: { enabled: true, modes: ['Compose', 'Sandbox'] },
};

function says(text: string): ModelEvent[] {
  return [
    { type: 'text', text },
    { type: 'end', stopReason: 'stop', usage, model: 'x' },
  ];
}

function calls(name: string, input: Json, id: number): ModelEvent[] {
  return [
    { type: 'tool-call', call: { id: `call-${id}`, name, arguments: JSON.stringify(input) } },
    { type: 'end', stopReason: 'tool-calls', usage, model: 'x' },
  ];
}

function aTool(name: string): Json {
  const schema = {
    type: 'object',
    properties: { n: { type: 'number' } },
    required: ['n'],
    additionalProperties: false,
  };
  return {
    name,
    description: `Doubles a number, as ${name}.`,
    inputSchema: schema,
    outputSchema: schema,
    implementation: { mode: 'sandbox', code: 'function execute(input) { return { n: input.n * 2 }; }', allowlist: [] },
    testCases: [{ input: { n: 2 }, expectedOutput: { n: 4 } }],
  };
}

/** What the model does in the first turn of a message, by the number of the message. Each message has two turns. */
const CALLS: ReadonlyMap<number, { name: string; input: Json }> = new Map([
  [3, { name: 'forge_tool', input: aTool('twofold') }],
  [5, { name: 'memory_set', input: { key: 'self.note', value: 'not in the context' } }],
  [7, { name: 'memory_set', input: { key: 'self.profile', value: 'likes tables' } }],
  [12, { name: 'forge_tool', input: aTool('twice') }],
]);
const MESSAGES = 15;

function asText({ system, messages }: ModelRequest): string {
  return [system, ...messages.map((message) => JSON.stringify(message))].join('\n');
}

function commonPrefix(one: string, other: string): number {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length += 1;
  return length;
}

describe('the context of an agent', () => {
  let workspace: string;
  let sandbox: Supervisor;
  before(async () => {
    workspace = await mkdtemp(join(tmpdir(), 'temper-context-'));
    await writeFile(join(workspace, 'SOUL.md'), 'Be kind.');
    sandbox = await createSupervisor({ clock: systemClock, warm: 1 });
  });
  after(async () => {
    await sandbox[Symbol.asyncDispose]();
    await rm(workspace, { recursive: true, force: true });
  });

  async function anAgent(changes: EngineChanges, profile = 'likes prose') {
    const records = changes.records ?? memoryRecordStore();
    await createRecordMemory(records, 'memory').set('self.profile', profile);
    const requests: ModelRequest[] = [];
    const answer = (request: ModelRequest): ModelEvent[] => {
      requests.push(request);
      return changes.answer?.(request) ?? says('ok');
    };
    const agent = { ...AGENT, ...changes.agent };
    const built = await anEngine({ workspace, sandbox }, { ...changes, agent, records, answer });
    const send = (text: string) => built.engine.handle({ session: 's-1', text }, anOp());
    return { ...built, requests, send };
  }

  /** The requests of a session, and of each the bytes of the request before it that it does not repeat. */
  async function aSession(invocation: 'Tools' | 'Code') {
    let message = 0;
    let id = 0;
    const answer = ({ messages, tools }: ModelRequest): ModelEvent[] => {
      if (tools.length === 0) return says('A summary.');
      if (messages.at(-1)?.role !== 'user') return says(`answer ${message}`);
      const { name, input } = CALLS.get(message) ?? { name: 'time_now', input: {} };
      id += 1;
      if (invocation === 'Tools') return calls(name, input, id);
      const code = `return ctx.manager.invoke(${JSON.stringify(name)}, ${JSON.stringify(input)})`;
      return calls('invoke', { code }, id);
    };
    // A bare `*` would hide the tools from the prompt of code mode.
    const tools = ['time_now', 'forge_tool', 'memory_set', 'twice', 'twofold'];
    const built = await anAgent({ answer, agent: { invocation, grants: { ...AGENT.grants, tools } } });
    const ofMessage: number[] = [];
    for (message = 1; message <= MESSAGES; message += 1) {
      const known = built.requests.length;
      await built.send(`message ${message}`);
      ofMessage.push(
        ...built.requests.slice(known).flatMap((request) => (request.tools.length === 0 ? [] : [message])),
      );
    }
    const turns = built.requests.filter((request) => request.tools.length > 0);
    const changed = turns.slice(1).map((request, index) => {
      const previous = asText(turns[index] ?? assert.fail());
      const common = commonPrefix(previous, asText(request));
      return { message: ofMessage[index + 1] ?? 0, bytes: Buffer.byteLength(previous.slice(common)), common };
    });
    const compacted = built.events.filter(({ type }) => type === 'compaction').length;
    const refused = built.events.filter((event) => event.type === 'tool-result' && !event.ok);
    assert.deepEqual(refused, []);
    return { ...built, turns, changed: changed.filter(({ bytes }) => bytes > 0), compacted };
  }

  it('over 30 turns with forges and memory writes the sent prefix changes with the context and with summaries only', async () => {
    const { turns, changed, compacted } = await aSession('Tools');
    assert.equal(turns.length, 30);
    assert.equal(compacted, 2);
    // Message 8 is the first one after the change of the profile. Summaries replace messages before the ninth and the fourteenth one.
    assert.deepEqual(
      changed.map(({ message }) => message),
      [8, 9, 14],
    );
    const { system, messages } = turns.at(-1) ?? assert.fail();
    const first = messages[0]?.text ?? '';
    assert.match(first, /Be kind\.[^]*likes tables/);
    const kept = changed.map(({ common }) => common - system.length);
    const context = first.indexOf('--- end of the context');
    assert.ok(context > 0 && kept.every((length) => length > 0), 'the system prompt is the same');
    assert.ok(
      kept.slice(1).every((length) => length > context),
      'a summary keeps the context',
    );
    const names = turns.map(({ tools }) => tools.map(({ name }) => name));
    for (const [index, tools] of names.slice(1).entries())
      assert.deepEqual(tools.slice(0, names[index]?.length), names[index], 'tools are only added');
  });

  it('in code mode the first message begins with the same context, and a forge extends the list of tools before it', async () => {
    const { turns, changed, compacted } = await aSession('Code');
    assert.equal(turns.length, 30);
    assert.equal(compacted, 2);
    assert.deepEqual(
      changed.map(({ message }) => message),
      [3, 8, 9, 12, 14],
    );
    for (const { messages } of turns) assert.match(messages[0]?.text ?? '', /^\[The context of this agent/);
  });

  it('a file that changes or disappears is as it is at the start of the next message, and never changes within one', async () => {
    const answer = ({ messages }: ModelRequest): ModelEvent[] =>
      messages.at(-1)?.role === 'user'
        ? calls('file_write', { path: 'SOUL.md', text: 'Be brief.' }, messages.length)
        : says('ok');
    const { requests, send, events } = await anAgent({ answer, level: 'elevated', policy: { autonomy: 'Full' } });
    await send('one');
    await send('two');
    await rm(join(workspace, 'SOUL.md'));
    await send('three');
    const seen = requests.map(
      ({ messages }) => /Be (kind|brief)/.exec(messages[0]?.text.split('--- memory')[0] ?? '')?.[1],
    );
    assert.deepEqual(seen, ['kind', 'kind', 'brief', 'brief', undefined, undefined]);
    const states = events.flatMap((event) => (event.type === 'context' ? [event.parts[0]?.state] : []));
    assert.deepEqual(states, ['Included', 'Included', 'Missing']);
    await writeFile(join(workspace, 'SOUL.md'), 'Be kind.');
  });

  it('a file outside the workspace, the state folder and keys without a grant are left out', async () => {
    const outside = await mkdtemp(join(tmpdir(), 'temper-outside-'));
    await mkdir(join(workspace, '.temper'), { recursive: true });
    await writeFile(join(outside, 'key'), 'a secret');
    await writeFile(join(workspace, '.temper/key'), 'a secret');
    await symlink(join(outside, 'key'), join(workspace, 'link'));
    await symlink(join(workspace, '.temper/key'), join(workspace, 'state'));
    const prompt = { system: 'x', context: { files: ['link', 'state'], memory: ['self.profile', 'other.key'] } };
    const { requests, send, events } = await anAgent({ agent: { prompt } });
    await send('hi');
    assert.doesNotMatch(requests[0]?.messages[0]?.text ?? '', /secret/);
    const states = events.flatMap((event) => (event.type === 'context' ? event.parts.map(({ state }) => state) : []));
    assert.deepEqual(states, ['Denied', 'Denied', 'Included', 'Denied']);
    const watched = await anAgent({ agent: { mode: 'Observe' } });
    await watched.send('hi');
    assert.equal(watched.requests[0]?.messages[0]?.text, 'hi', 'an agent that may do nothing reads nothing');
    await rm(outside, { recursive: true });
  });

  it('a context taints by what is read: values of tainted sessions always, files where the policy says so', async () => {
    const isTainted = async (changes: EngineChanges, tainted: boolean): Promise<boolean> => {
      const records = memoryRecordStore();
      const built = await anAgent({ ...changes, records });
      await createRecordMemory(records, 'memory').set('self.profile', 'x', { tainted });
      await built.send('hi');
      return built.events.some((event) => event.type === 'warning' && event.code === 'session-tainted');
    };
    assert.equal(await isTainted({}, false), false);
    assert.equal(await isTainted({}, true), true);
    assert.equal(await isTainted({ policy: { tainted: { sources: ['File'] } } }, false), true);
  });
});
