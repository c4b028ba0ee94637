import assert from 'node:assert/strict';
import { join, resolve } from 'node:path';
import { after, describe, it } from 'node:test';
import { contextOf } from '../../agent/context/context-text.ts';
import type { AgentLoopDeps } from '../../agent/loop/loop.ts';
import {
  anAgent,
  calls,
  type LoopFixture,
  says,
  type ScriptedAnswer,
  scriptedLedger,
  scriptedLoop,
  scriptedModel,
  type ScriptedTool,
  WaitsFor,
} from '../../agent/loop/scripted-loop.testing.ts';
import { overJson } from '../../agent/provider/json-boundary.testing.ts';
import { requiredValue } from '../../agent/returns/finish.ts';
import { systemClock } from '../../lib/clock.ts';
import { isTemperError } from '../../lib/errors.ts';
import { ulids } from '../../lib/ids.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { meteredStub } from '../../models/pipeline.testing.ts';
import { createSchemaCompiler } from '../../tools/json-schema/compiler.ts';
import { localPrograms } from '../process/agent-process.ts';
import { ProgramProviders } from './program-providers.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const program = {
  name: 'fixture',
  folder: ROOT,
  program: join(ROOT, 'test/fixtures/acp-agent/agent.ts'),
  arguments: [],
  environment: {},
};

interface Options extends Partial<AgentLoopDeps> {
  /** Arguments of the program. */
  argument?: string;
  maxProcesses?: number;
  records?: RecordStore;
  tools?: Record<string, ScriptedTool>;
}

const opened = new AsyncDisposableStack();

/** The loop with the fixture program in place of its own provider. The model, the tools and the ledger are scripted. */
function programLoop(
  answers: ScriptedAnswer[],
  { tools = {}, argument, maxProcesses = 4, ...deps }: Options = {},
): LoopFixture {
  const ledger = scriptedLedger();
  const model = scriptedModel(answers);
  const metered = meteredStub(model, { ledger, ids: ulids });
  const started = { ...program, arguments: argument === undefined ? [] : [argument] };
  const host = localPrograms(started);
  const providers = opened.use(new ProgramProviders({ host, clock: systemClock, ids: ulids, maxProcesses }));
  const provider = providers.create(metered);
  const fixture = scriptedLoop([], tools, { ...deps, provider: overJson(provider), ledger });
  return { ...fixture, model, send: (text, options) => fixture.send(text, { milliseconds: 120_000, ...options }) };
}

function calledTools({ events }: LoopFixture): [string, boolean][] {
  return events.flatMap((event): [string, boolean][] => (event.type === 'tool-result' ? [[event.tool, event.ok]] : []));
}

describe('an agent program as provider', () => {
  after(() => opened.disposeAsync());

  it('a message is answered with the model and the tools of the agent, and what was served is charged', async () => {
    const loop = programLoop(
      [
        [{ type: 'text', text: 'I look.' }, ...calls(['look', { at: 1 }])],
        (request) => says(`It is ${request.messages.at(-1)?.text ?? ''}.`),
        says('again'),
      ],
      { tools: { look: () => 7 } },
    );
    const { reply, turns, toolCalls, usage } = await loop.send('go');
    assert.deepEqual([reply, turns, toolCalls], ['It is 7.', 2, 1]);
    assert.deepEqual(usage, { inputTokens: 20, outputTokens: 10, cachedInputTokens: 0 });
    assert.deepEqual(
      loop.ledger.log.map(({ used }) => used?.outputTokens),
      [5, 5],
    );
    const [first] = loop.model.requests;
    assert.deepEqual([first?.model, first?.maxOutputTokens], ['scripted/model', 4_096]);
    assert.deepEqual(
      first?.tools.map(({ name }) => name),
      ['look'],
    );
    const said = loop.events.flatMap((event) => (event.type === 'message' && !event.delta ? [event.text] : []));
    assert.deepEqual(said, ['I look.', 'It is 7.']);
    const started = loop.events.filter((event) => event.type === 'turn-start').length;
    assert.equal(started, 2);

    assert.equal((await loop.send('more')).reply, 'again');
    const texts = loop.model.requests.at(-1)?.messages.map(({ role, text }) => `${role}: ${text}`) ?? [];
    assert.match(
      texts[0] ?? '',
      /^user: Your instructions:\n\nYou are careful\.[^]*The message that you answer now:\n\ngo$/,
    );
    assert.equal(texts.at(-1), 'user: more', 'the program keeps its conversation, so it gets the new text alone');
  });

  it('a program that lists its tools when it opens its session has those of its first message', async () => {
    assert.equal((await programLoop([], { tools: { look: () => 7 } }).send('!listed')).reply, 'look');
  });

  it('a program gets the context of the agent when it starts, and starts again when the context changes', async () => {
    let text = 'Be kind.';
    const context = async () => contextOf([{ kind: 'File', name: 'SOUL.md', state: 'Included', text }]);
    const loop = programLoop([says('one'), says('two'), says('three')], { context });
    for (const message of ['1', '2', '3']) {
      if (message === '3') text = 'Be brief.';
      await loop.send(message);
    }
    const firsts = loop.model.requests.map(({ messages }) => messages[0]?.text ?? '');
    assert.match(firsts[0] ?? '', /Be kind\.[^]*The message that you answer now:\n\n1$/);
    assert.equal(firsts[1], firsts[0], 'the program keeps its conversation');
    assert.match(firsts[2] ?? '', /Be brief\.[^]*User: 1\n\nYou: one[^]*answer now:\n\n3$/);
  });

  it('a call that is refused is an error for the program, and steps and turns are limited', async () => {
    const loop = programLoop([calls(['look', {}]), calls(['none', {}]), says('ok'), calls(['look', {}])], {
      tools: { look: () => 7 },
    });
    assert.equal((await loop.send('go')).reply, 'ok');
    assert.deepEqual(calledTools(loop), [
      ['look', true],
      ['none', false],
    ]);
    const agent = { agent: anAgent({ steps: 2 }) };
    await assert.rejects(loop.send('go', agent), (error) => isTemperError(error, 'TEMPER_STEP_LIMIT'));
    await assert.rejects(loop.send('go', { agent: anAgent({ turns: 2 }) }), (error) =>
      isTemperError(error, 'TEMPER_TURN_LIMIT'),
    );
  });

  it('a value is asked for until the program gives it, and ends the message', async () => {
    const returns = requiredValue(
      '{"type":"object","properties":{"count":{"type":"integer"}},"required":["count"]}',
      createSchemaCompiler(),
    );
    const loop = programLoop([says('Seven.'), calls(['finish', { count: 'x' }]), calls(['finish', { count: 7 }])], {
      returns,
    });
    const { reply, format } = await loop.send('count');
    assert.deepEqual([reply, format, loop.model.requests.length], ['{"count":7}', 'json', 3]);
    const asked = loop.model.requests[1]?.messages.at(-1);
    assert.match(asked?.text ?? '', /^\[Your answer has no result/);
  });

  it('a parked call waits for its decision, and runs once in a later attempt, in another process', async () => {
    let decided = false;
    let runs = 0;
    const look = (): number => {
      if (!decided) throw new WaitsFor('approval-1');
      runs += 1;
      return 7;
    };
    const first = programLoop([calls(['look', {}]), says('Late.')], { tools: { look } });
    const { parked } = await first.send('go', { message: 'm-1' });
    assert.deepEqual(parked, ['approval-1']);
    decided = true;
    const second = programLoop([says('Seven.')], { tools: { look }, records: first.records });
    assert.equal((await second.send('go', { message: 'm-1' })).reply, 'Seven.');
    assert.equal(runs, 1);
    const prompt = second.model.requests[0]?.messages[0]?.text ?? '';
    assert.match(
      prompt,
      /An earlier attempt at this message was interrupted\. It did this:\n\nYou called look with \{\}\n\nResult of look: 7/,
    );
  });

  for (const [argument, texts] of [
    ['loading', /^go\n---\nmore$/],
    ['forgetting', /^Your instructions:[^]*User: go\n\nYou: one[^]*answer now:\n\nmore$/],
    [undefined, /^Your instructions:[^]*User: go\n\nYou: one[^]*answer now:\n\nmore$/],
  ] as const) {
    it(`a session whose process ended for another one goes on in a new process: ${argument ?? 'as text'}`, async () => {
      const options = { maxProcesses: 1, ...(argument === undefined ? {} : { argument }) };
      const loop = programLoop([says('one'), says('two'), says('three')], options);
      await loop.send('go', { session: 's-1' });
      await loop.send('other', { session: 's-2' });
      assert.equal((await loop.send('more', { session: 's-1' })).reply, 'three');
      const asked = loop.model.requests[2]?.messages.flatMap(({ role, text }) => (role === 'user' ? [text] : [])) ?? [];
      const last = asked.map((text) => text.replace(/^Your[^]*answer now:\n\n(?=go$)/, ''));
      assert.match(last.join('\n---\n'), texts);
    });
  }

  it('HTTP clients that a program brings reach its model and its tools, and nothing else', async () => {
    const { reply } = await programLoop([]).send('!clients');
    const { undici, http, elsewhere } = JSON.parse(reply) as Record<string, unknown[]>;
    assert.match(JSON.stringify(undici), /^\[400,.*the body is not a JSON object/);
    assert.match(String(http?.[0]), /^\{"object":"list".*"id":"temper"/);
    assert.equal(http?.[1], http?.[0]);
    assert.deepEqual(elsewhere, ['ERR_ACCESS_DENIED', 'ERR_ACCESS_DENIED']);
  });

  it('a failure of the model is the failure of the message', async () => {
    const ledger = scriptedLedger(0);
    const model = meteredStub(scriptedModel([says('never')]), { ledger, ids: ulids });
    const host = localPrograms(program);
    const providers = opened.use(new ProgramProviders({ host, clock: systemClock, ids: ulids }));
    const provider = providers.create(model);
    const { send } = scriptedLoop([], {}, { provider, ledger });
    await assert.rejects(send('go', { milliseconds: 120_000 }), (error) =>
      isTemperError(error, 'TEMPER_QUOTA_EXCEEDED'),
    );
  });

  it('a program that crashes fails its message by name; the next one has a new process with the history', async () => {
    const loop = programLoop([says('Hello.')]);
    assert.equal((await loop.send('hi')).reply, 'Hello.');
    await assert.rejects(loop.send('!crash'), (error) => isTemperError(error, 'TEMPER_ACP_AGENT_FAILED'));
    const { reply } = await loop.send('!echo');
    assert.match(reply, /User: hi\n\nYou: Hello\./);
  });

  it('a message that is cancelled ends, and so does its process', async () => {
    const loop = programLoop([says('never')]);
    const controller = new AbortController();
    const cancelled = loop.send('!hang', {
      signal: controller.signal,
      onEvent: ({ type }) => void (type === 'message-received' && setTimeout(() => controller.abort(), 50)),
    });
    await assert.rejects(cancelled, (error) => isTemperError(error, 'TEMPER_CANCELLED'));
  });
});
