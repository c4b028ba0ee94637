import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Events } from '../agent/tools/events/port.ts';
import { systemClock } from '../lib/clock.ts';
import { isTemperError, TemperError } from '../lib/errors.ts';
import { type Json, type JsonObject, member } from '../lib/json.ts';
import { memoryRecordStore } from '../lib/record-store.ts';
import type { ModelEvent, ModelRequest } from '../models/port.ts';
import { createSupervisor, type Supervisor } from '../sandbox/supervisor.ts';
import { anEngine, anOp, type EngineChanges } from './engine.testing.ts';

const USAGE = { inputTokens: 1, outputTokens: 1, cachedInputTokens: 0 };

function says(text: string): ModelEvent[] {
  return [
    { type: 'text', text },
    { type: 'end', stopReason: 'stop', usage: USAGE, model: 'x' },
  ];
}

function calls(name: string, input: Json): ModelEvent[] {
  return [
    { type: 'tool-call', call: { id: 'call-1', name, arguments: JSON.stringify(input) } },
    { type: 'end', stopReason: 'tool-calls', usage: USAGE, model: 'x' },
  ];
}

/** The text of the last result that the model got. */
function resultIn({ messages }: ModelRequest): string {
  const last = messages.findLast((item) => item.role === 'tool');
  return last?.text ?? '';
}

type Answer = (request: ModelRequest, turn: number) => ModelEvent[];

/** The answers of the agent itself, and those of the runs by the first word of their prompt. */
type Script = Readonly<Record<string, Answer>>;

const GRANTS = { tools: ['agent_run', 'file_read', 'file_list'] };

describe('agent_run', () => {
  let workspace: string;
  let sandbox: Supervisor;

  before(async () => {
    workspace = await mkdtemp(join(tmpdir(), 'temper-run-'));
    await writeFile(join(workspace, 'n.txt'), '21');
    sandbox = await createSupervisor({ clock: systemClock, warm: 1 });
  });
  after(async () => {
    await sandbox[Symbol.asyncDispose]();
    await rm(workspace, { recursive: true, force: true });
  });

  /** An engine whose agent and runs answer by a script; the agent has the prompt `You test.`. */
  async function scripted(script: Script, changes: EngineChanges = {}) {
    const requests: ModelRequest[] = [];
    const turns = new Map<string, number>();
    const answer = (request: ModelRequest): ModelEvent[] => {
      requests.push(structuredClone(request));
      const speaker = request.system.split(/\s/, 1)[0] ?? '';
      const turn = (turns.get(speaker) ?? 0) + 1;
      turns.set(speaker, turn);
      return script[speaker]?.(request, turn) ?? says(`no script for ${speaker}`);
    };
    const agent = { grants: GRANTS, forge: { enabled: false }, ...changes.agent };
    const fixture = await anEngine({ workspace, sandbox }, { ...changes, agent, answer });
    const send = (text = 'go') => fixture.engine.handle({ session: 's-1', text }, anOp());
    return {
      ...fixture,
      requests,
      send,
      of: (speaker: string) => requests.filter((r) => r.system.startsWith(speaker)),
    };
  }

  /** The reply of an agent that makes one call of `agent_run` and repeats its result. */
  async function resultOf(input: Json, script: Script = {}, changes: EngineChanges = {}) {
    const fixture = await scripted(
      { ...script, You: (request, turn) => (turn === 1 ? calls('agent_run', input) : says(resultIn(request))) },
      changes,
    );
    const { reply } = await fixture.send();
    await fixture.engine.stop();
    return { ...fixture, reply };
  }

  it('a run has its own prompt and history, calls tools, and its text is the result', async () => {
    const { reply, of, events, audit } = await resultOf(
      { prompt: 'Reader. Be brief.', message: 'What is in n.txt?' },
      {
        'Reader.': (request, turn) =>
          turn === 1
            ? calls('file_read', { path: 'n.txt' })
            : says(`It says ${resultIn(request).includes('21') ? '21' : 'nothing'}.`),
      },
    );
    assert.equal(reply, '"It says 21."');
    const [first] = of('Reader.');
    assert.deepEqual(first?.messages, [{ role: 'user', text: 'What is in n.txt?' }]);
    assert.deepEqual(first?.tools.map(({ name }) => name).toSorted(), [
      'discover_capabilities',
      'file_list',
      'file_read',
    ]);
    assert.ok(
      of('You')
        .at(-1)
        ?.messages.every((item) => item.role !== 'tool' || item.name === 'agent_run'),
    );
    const kinds = events.flatMap((event) => (event.contextId === undefined ? [] : [event.type]));
    assert.deepEqual(kinds, [
      'agent-start',
      'turn-start',
      'tool-call',
      'tool-result',
      'turn-end',
      'turn-start',
      'agent-message',
      'turn-end',
      'agent-complete',
    ]);
    const called = (await audit.records()).filter(({ facts }) => facts['tool'] === 'file_read');
    assert.equal(called.length, 1);
    const end = events.find((event) => event.type === 'session-end');
    assert.ok(end?.type === 'session-end' && end.turns === 2 && end.toolCalls === 1);
    assert.ok(end.inputTokens === 4, 'what the run used counts for the message');
  });

  it('the events of a run have its id and those of the contexts around it', async () => {
    const { events } = await resultOf(
      { prompt: 'Outer.', allowedTools: ['agent_run', 'file_list'] },
      {
        'Outer.': (_, turn) => (turn === 1 ? calls('agent_run', { prompt: 'Inner.' }) : says('outer')),
        'Inner.': (_, turn) => (turn === 1 ? calls('file_list', {}) : says('inner')),
      },
    );
    const [outer, inner] = events.filter((event) => event.type === 'agent-start');
    assert.equal(outer?.ancestorIds?.length, 1);
    assert.deepEqual(inner?.ancestorIds, [...(outer?.ancestorIds ?? []), outer?.contextId]);
    const listed = events.find((event) => event.type === 'tool-call' && event.tool === 'file_list');
    assert.deepEqual([listed?.contextId, listed?.ancestorIds], [inner?.contextId, inner?.ancestorIds]);
  });

  /** What a run with `events` published, and what its message reported. */
  async function publishing(grants: object, publish: (input: JsonObject, count: number) => void = () => undefined) {
    const published: JsonObject[] = [];
    const events = {
      publish: async (input: Json) => {
        publish(input as JsonObject, published.length);
        published.push(input as JsonObject);
        return { id: 'evt-1', messages: 1, refused: 0 };
      },
    } as unknown as Events;
    const found = await resultOf(
      { prompt: 'Reader.', name: 'notes', events: 'team.progress' },
      { 'Reader.': (_, turn) => (turn === 1 ? calls('file_read', { path: 'none.txt' }) : says('nothing')) },
      { agent: { grants: { ...GRANTS, ...grants } }, agents: { events: () => events } },
    );
    const types = published.map(({ data }) => member(data ?? null, 'type'));
    return { ...found, published, types };
  }
  const MAY_PUBLISH = { tools: [...GRANTS.tools, 'event_publish'], events: { publish: ['team.progress'] } };

  it('what a run does is published in order under its subject, without arguments and results of tools', async () => {
    const { reply, types, published, events, audit } = await publishing(MAY_PUBLISH);
    assert.equal(reply, '"nothing"');
    assert.deepEqual(types, [
      'agent-start',
      'turn-start',
      'tool-call',
      'tool-error',
      'turn-end',
      'turn-start',
      'agent-message',
      'turn-end',
      'agent-complete',
    ]);
    assert.ok(published.every(({ subject }) => subject === 'team.progress'));
    const start = events.find((event) => event.type === 'agent-start');
    for (const { data } of published) {
      assert.equal(member(data ?? null, 'contextId'), start?.contextId);
      assert.deepEqual(member(data ?? null, 'ancestorIds'), start?.ancestorIds);
    }
    assert.ok(!JSON.stringify(published).includes('none.txt'));
    const called = (await audit.records()).filter(({ facts }) => facts['tool'] === 'event_publish');
    assert.equal(called.length, types.length, 'each is a call of the agent');
    assert.ok(!events.some((event) => event.type === 'tool-call' && event.tool === 'event_publish'));
  });

  it('a run does not start when its agent may not publish', async () => {
    const { reply, of, published } = await publishing({});
    assert.match(reply, /TEMPER_(POLICY_DENIED|NOT_FOUND).*team\.progress/);
    assert.deepEqual([of('Reader.').length, published.length], [0, 0]);
  });

  it('events beyond a rate are left out with one warning, and after a lasting refusal no more are tried', async () => {
    const limited = await publishing(MAY_PUBLISH, ({ data }) => {
      if (member(data ?? null, 'type') === 'turn-start') throw new TemperError('TEMPER_RATE_LIMITED', 'too fast');
    });
    assert.equal(limited.types.length, 7);
    const warnings = limited.events.filter((event) => event.type === 'warning');
    assert.deepEqual(
      warnings.map(({ code }) => code),
      ['TEMPER_RATE_LIMITED'],
    );
    const refused = await publishing(MAY_PUBLISH, (_, count) => {
      if (count === 2) throw new TemperError('TEMPER_POLICY_DENIED', 'no more');
    });
    assert.deepEqual([refused.reply, refused.types.length], ['"nothing"', 2]);
  });

  it('the trace of a message, which hooks read, has the turns of a nested agent with their place', async () => {
    const fixture = await scripted({
      You: (_, turn) => (turn === 1 ? calls('agent_run', { prompt: 'Reader.' }) : says('done')),
      'Reader.': () => says('x'),
    });
    const { trace } = await fixture.send();
    await fixture.engine.stop();
    const nested = trace.filter(({ type, contextId }) => contextId !== undefined && type.startsWith('turn-'));
    assert.deepEqual(
      nested.map(({ type, ancestorIds }) => [type, ancestorIds?.length]),
      [
        ['turn-start', 1],
        ['turn-end', 1],
      ],
    );
  });

  it('a run is offered and may call only what allowedTools names, and no run below it unless named', async () => {
    const { reply, of } = await resultOf(
      { prompt: 'Narrow.', allowedTools: ['file_l*', 'agent_*'] },
      {
        'Narrow.': (request, turn) =>
          turn === 1
            ? calls('file_read', { path: 'n.txt' })
            : turn === 2
              ? calls('agent_run', { prompt: 'x' })
              : says(request.messages.flatMap((item) => (item.role === 'tool' ? [item.text] : [])).join(' ')),
      },
    );
    assert.deepEqual(
      of('Narrow.')[0]?.tools.map(({ name }) => name),
      ['file_list'],
    );
    assert.equal(reply.split('agent_run.allowedTools').length, 3, reply);
  });

  it('a run below a run has at most the tools of the run around it', async () => {
    const { of } = await resultOf(
      { prompt: 'Outer.', allowedTools: ['agent_run', 'file_list'] },
      {
        'Outer.': (_, turn) =>
          turn === 1 ? calls('agent_run', { prompt: 'Inner.', allowedTools: ['file_*'] }) : says('x'),
      },
    );
    assert.deepEqual(
      of('Inner.')[0]?.tools.map(({ name }) => name),
      ['file_list'],
    );
  });

  it('pinned arguments of agent_run narrow every run', async () => {
    const agent = { grants: GRANTS, arguments: [{ tool: 'agent_run', argument: 'allowedTools', allow: ['file_l*'] }] };
    const one = async (input: Json) => (await resultOf(input, { 'Reader.': () => says('ran') }, { agent })).reply;
    assert.match(await one({ prompt: 'Reader.' }), /pinned and required/);
    assert.match(await one({ prompt: 'Reader.', allowedTools: ['file_list', 'file_read'] }), /TEMPER_POLICY_DENIED/);
    assert.match(await one({ prompt: 'Reader.', allowedTools: ['*'] }), /TEMPER_POLICY_DENIED/);
    assert.equal(await one({ prompt: 'Reader.', allowedTools: ['file_list'] }), '"ran"');
  });

  it('a run that asks for another model, for more turns, or for what no run has is refused, and says why', async () => {
    const one = async (config: Json) => (await resultOf({ prompt: 'Reader.', config })).reply;
    assert.match(await one({ model: 'test/other' }), /TEMPER_CHILD_REFUSED.*spec\.model\.primary/);
    assert.match(await one({ maxTurns: 31 }), /TEMPER_CHILD_REFUSED.*spec\.limits\.turns/);
    assert.match(await one({ contextEdit: true }), /TEMPER_TOOL_INPUT_INVALID.*contextEdit/);
    assert.match(await one({ persistent: true }), /TEMPER_TOOL_INPUT_INVALID.*persistent/);
  });

  it('with returns the result is the object, and a run that answers with text is asked for it', async () => {
    const returns = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] };
    const { reply, of } = await resultOf(
      { prompt: 'Counter.', returns },
      { 'Counter.': (_, turn) => (turn === 1 ? says('seven') : calls('finish', { n: 7 })) },
    );
    assert.equal(reply, '{"n":7}');
    const reminded = of('Counter.')[1]?.messages.at(-1);
    assert.match(reminded?.text ?? '', /Call the tool finish/);
  });

  it('a schema of returns that cannot be used is an error of the call', async () => {
    const { reply } = await resultOf({ prompt: 'Counter.', returns: { type: 'array' } });
    assert.match(reply, /TEMPER_TOOL_INPUT_INVALID.*agent_run: returns must be/);
  });

  it('a run at its limit fails with what it found', async () => {
    const { reply } = await resultOf(
      { prompt: 'Endless.', config: { maxTurns: 1 } },
      { 'Endless.': (_, turn) => (turn === 1 ? calls('file_list', {}) : says('found one file')) },
    );
    assert.match(reply, /TEMPER_TURN_LIMIT.*It said: found one file/);
  });

  it('a run with a name continues in a later message of the session, and another name has a history of its own', async () => {
    const { send, of, engine } = await scripted({
      You: (request, turn) =>
        turn % 2 === 1 ? calls('agent_run', JSON.parse(request.messages.at(-1)?.text ?? '')) : says('ok'),
      'Notes.': () => says('noted'),
    });
    await send(JSON.stringify({ prompt: 'Notes.', name: 'notes', message: 'one' }));
    await send(JSON.stringify({ prompt: 'Notes.', name: 'notes', message: 'two' }));
    await send(JSON.stringify({ prompt: 'Notes.', name: 'other', message: 'three' }));
    const texts = of('Notes.').map(({ messages }) => messages.map(({ text }) => text));
    assert.deepEqual(texts, [['one'], ['one', 'noted', 'two'], ['three']]);
    await engine.stop();
  });

  it('an interrupted run resumes where it stopped, and makes no call twice', async () => {
    const records = memoryRecordStore();
    const interrupted = new AbortController();
    const You: Answer = (request) =>
      resultIn(request) === '' ? calls('agent_run', { prompt: 'Reader.' }) : says(resultIn(request));
    const read = calls('file_read', { path: 'n.txt' });
    const stop = (): ModelEvent[] => {
      interrupted.abort();
      return [];
    };
    const first = await scripted({ You, 'Reader.': (_, turn) => (turn === 1 ? read : stop()) }, { records });
    const op = { ...anOp(), signal: interrupted.signal };
    const message = { session: 's-1', text: 'go', message: 'm-1' };
    await assert.rejects(first.engine.handle(message, op), (error) => isTemperError(error, 'TEMPER_CANCELLED'));
    await first.engine.stop();
    const again = await scripted({ You, 'Reader.': () => says('done') }, { records });
    const { reply } = await again.engine.handle(message, anOp());
    assert.equal(reply, '"done"');
    const [resumed, ...more] = again.of('Reader.');
    assert.deepEqual([resumed?.messages.map(({ role }) => role), more], [['user', 'assistant', 'tool'], []]);
    assert.deepEqual(
      again.events.flatMap((event) => (event.type === 'tool-call' ? event.tool : [])),
      ['agent_run'],
    );
    await again.engine.stop();
  });

  it('a call outside of a message starts no run', async () => {
    const { call, engine } = await scripted({});
    const result = await call('agent_run', { prompt: 'Reader.' });
    assert.ok(!result.ok && result.error.code === 'TEMPER_POLICY_DENIED', JSON.stringify(result));
    await engine.stop();
  });

  it('programs start runs in parallel, catch a failing one, and give them memory', async () => {
    const code = `
      const run = (prompt, rest = {}) => ctx.manager.invoke('agent_run', { prompt, ...rest });
      const [a, b] = await Promise.all([run('One.', { memory: { n: 20 } }), run('Two.')]);
      let failed = '';
      try { await run('Three.', { config: { model: 'test/other' } }); } catch (error) { failed = error.code; }
      ctx.manager.finish({ a, b, failed });`;
    const finishWith = (value: string) => () => calls('invoke', { code: `ctx.manager.finish(${value})` });
    const { send, engine } = await scripted(
      {
        You: () => calls('invoke', { code }),
        'One.': finishWith('memory.n + 1'),
        'Two.': (_, turn) =>
          turn === 1
            ? calls('invoke', { code: "return (await ctx.manager.invoke('file_read', { path: 'n.txt' })).text" })
            : says('two'),
      },
      { agent: { invocation: 'Code', grants: GRANTS, forge: { enabled: false } } },
    );
    const { reply } = await send();
    assert.deepEqual(JSON.parse(reply), { a: '21', b: 'two', failed: 'TEMPER_CHILD_REFUSED' });
    await engine.stop();
  });
});
