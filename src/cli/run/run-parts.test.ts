import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEVER_ABORTED } from '../../../test/support/stubs.ts';
import { type NamedModelsConfig, resolveModel } from '../../models/named-models.ts';
import type { ModelPipeline, ResolvedRequest } from '../../models/pipeline.ts';
import type { ModelEvent } from '../../models/port.ts';
import { CallMeter } from '../../models/charge/call-meter.ts';
import { requestSize } from '../../models/charge/request-size.ts';
import { systemClock } from '../../lib/clock.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import { decisionOf } from './inline-approvals.ts';
import { countUsage, dollars, usageLine, usageObject } from './model-usage.ts';
import { replCommand } from './repl-commands.ts';

const CONFIG: NamedModelsConfig = {
  providers: [{ name: 'p', type: 'openai', models: [{ name: 'priced', inputPrice: 1, outputPrice: 2 }] }],
  aliases: {},
};

function aRequest(model = 'p/priced'): ResolvedRequest {
  return { model: resolveModel(CONFIG, model), system: '', messages: [], tools: [], maxOutputTokens: 10 };
}

function anOp(signal = NEVER_ABORTED): CallOptions {
  return { signal, deadline: systemClock.monotonic() + 1_000, key: 'k' };
}

function counted(stream: () => AsyncIterable<ModelEvent>) {
  const pipeline: ModelPipeline = { stream, embed: () => Promise.resolve([]) };
  return countUsage(
    { pipeline, resolve: (name) => resolveModel(CONFIG, name), embedding: undefined, circuits: () => [] },
    CONFIG,
  );
}

async function* anAnswer(): AsyncIterable<ModelEvent> {
  yield { type: 'text', text: 'hi' };
  yield {
    type: 'end',
    stopReason: 'stop',
    model: 'm',
    usage: { inputTokens: 100, outputTokens: 10, cachedInputTokens: 0 },
  };
}

async function read(events: AsyncIterable<ModelEvent>, limit = Number.POSITIVE_INFINITY): Promise<void> {
  let count = 0;
  for await (const _event of events) if (++count >= limit) return;
}

describe('the usage of a run', () => {
  it('the usage of a run counts tokens and money of every model, and names the models that have the default price', async () => {
    const { models, usage } = counted(anAnswer);
    await read(models.pipeline.stream(aRequest(), anOp()));
    const line = usageLine({ turns: 1, toolCalls: 1 }, usage, false);
    assert.equal(line, 'Used 1 turn, 1 tool call, 110 tokens, $0.0001.');
    const object = { turns: 1, toolCalls: 1, tokens: 110, costMicros: 120, modelsWithDefaultPrice: [] };
    assert.deepEqual(usageObject({ turns: 1, toolCalls: 1 }, usage, false), object);
    await read(models.pipeline.stream(aRequest('p/unpriced'), anOp()));
    assert.deepEqual(usageObject({ turns: 1, toolCalls: 1 }, usage, false)['modelsWithDefaultPrice'], ['p/unpriced']);
    assert.equal(
      usageLine({ turns: 2, toolCalls: 0 }, usage, false),
      'Used 2 turns, 0 tool calls, 220 tokens, $0.0003 (p/unpriced without a price: $1 per million input tokens, $3 output).',
    );
    assert.match(usageLine({ turns: 2, toolCalls: 0 }, usage, true), /220 tokens \(replayed\)\.$/);
  });

  it('the usage of a run counts what the ledger charges, where a provider counts less than the request has at least', async () => {
    const { models, usage } = counted(anAnswer);
    const request = { ...aRequest(), system: 'Look at the files. '.repeat(1_000) };
    await read(models.pipeline.stream(request, anOp()));
    const meter = new CallMeter(requestSize(request), request.maxOutputTokens);
    meter.counted({ inputTokens: 100, outputTokens: 10, cachedInputTokens: 0 }, true);
    const { inputTokens, outputTokens } = meter.charged();
    assert.ok(inputTokens > 100);
    assert.equal(usage.tokens, inputTokens + outputTokens);
  });

  it('the usage of a run names an answer that was left before its end, but not a call that the provider rejected', async () => {
    const { models, usage } = counted(anAnswer);
    await read(models.pipeline.stream(aRequest(), anOp()), 1);
    assert.match(usageLine({ turns: 0, toolCalls: 0 }, usage, false), /, and 1 unfinished answer of unknown size\.$/);
    const rejecting = counted(() => ({
      [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(new Error('429')) }),
    }));
    await assert.rejects(read(rejecting.models.pipeline.stream(aRequest(), anOp())));
    assert.equal(rejecting.usage.unfinished, 0);
  });

  it('small amounts of money are not shown as zero', () => {
    assert.deepEqual([0, 4_200, 1_234_567_890].map(dollars), ['$0.00', '$0.0042', '$1,234.57']);
  });
});

describe('the reply to an approval question', () => {
  for (const [reply, verb, reason] of [
    ['y', 'Approve', 'approved at the terminal'],
    ['Yes, looks fine', 'Approve', 'looks fine'],
    ['', 'Deny', 'denied at the terminal'],
    ['n', 'Deny', 'denied at the terminal'],
    ['n: not now', 'Deny', 'not now'],
    ['yesterday was better', 'Deny', 'yesterday was better'],
  ] as const) {
    it(`${JSON.stringify(reply)} means ${verb}`, () => {
      assert.deepEqual(decisionOf('r', reply), { verb, target: 'r', reason });
    });
  }
});

describe('the commands of the prompt', () => {
  const repl = {
    agent: { metadata: { name: 'analyst' }, spec: {} } as Parameters<typeof replCommand>[1]['agent'],
    session: 's-1',
    state: '.temper',
    usage: () => 'Used 1 turn.',
    forgedTools: () => [],
  };
  const textOf = (line: string): string => {
    const result = replCommand(line, repl);
    return typeof result === 'object' ? result.text : String(result);
  };

  it('/usage, /session, /tools, /help and /exit are commands', () => {
    assert.equal(textOf('/usage'), 'Used 1 turn.\n');
    assert.match(textOf(' /session '), /--session s-1\n.*temper trace s-1/);
    assert.match(textOf('/tools'), /No forged tools yet/);
    assert.match(textOf('/help'), /\/exit/);
    assert.equal(replCommand('/exit', repl), 'exit');
  });

  it('a mistyped command is not sent, and other text that starts with a slash is a message', () => {
    assert.match(textOf('/hlep'), /\/hlep is not a command/);
    assert.equal(replCommand('/etc/hosts', repl), undefined);
    assert.equal(replCommand('/usage of disks?', repl), undefined);
  });
});
