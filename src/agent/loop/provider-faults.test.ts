import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { systemClock } from '../../lib/clock.ts';
import { readBody } from '../../lib/async/read-body.ts';
import { isTemperError } from '../../lib/errors.ts';
import { ulids } from '../../lib/ids.ts';
import type { JsonObject } from '../../lib/json.ts';
import { metering } from '../../models/metering.ts';
import { openModels } from '../../models/named-models.ts';
import { calledBy, compose, withNames } from '../../models/pipeline.ts';
import type { Model, TokenUsage } from '../../models/port.ts';
import type { ProviderType } from '../../models/providers.ts';
import { anthropicWire } from '../../models/replay/wire/anthropic.ts';
import { chatWire } from '../../models/replay/wire/openai-chat.ts';
import { responsesWire } from '../../models/replay/wire/openai-responses.ts';
import type { FilledAnswer, ReplayWireFormat } from '../../models/replay/wire/wire.ts';
import { PROVIDER_FAULTS, type ProviderFault, sendWhole } from './provider-faults.testing.ts';
import { anAgent, scriptedLedger, scriptedLoop } from './scripted-loop.testing.ts';

const WIRES: readonly [ProviderType, ReplayWireFormat][] = [
  ['openai', chatWire],
  ['openai-responses', responsesWire],
  ['anthropic', anthropicWire],
];
const TURNS = 40;
/** On the wire formats that are not the first one of a fault. */
const SHORT_TURNS = 2;
/** The first attempt at every fourth turn fails. */
const FAULT_EVERY = 4;
const MAX_DELIVERIES = 100;

interface FaultyProvider extends AsyncDisposable {
  url: string;
  served: Pick<TokenUsage, 'inputTokens' | 'outputTokens'>;
  faults: number;
}

/** A provider whose model calls `step` with the next number, until all turns are done. */
async function faultyProvider(wire: ReplayWireFormat, fault: ProviderFault, turns: number): Promise<FaultyProvider> {
  const failed = new Set<number>();
  const provider = { url: '', served: { inputTokens: 0, outputTokens: 0 }, faults: 0 };
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = JSON.parse(await readBody(request, 10_000_000, () => new Error('too large'))) as JsonObject;
    const turn = wire.read(body).messages.filter(({ role }) => role === 'tool').length;
    const whole = answerOf(turn, turns);
    const isFaulty = turn % FAULT_EVERY === 1 && turn < turns && !failed.has(turn);
    failed.add(turn);
    if (isFaulty) provider.faults += 1;
    if (!isFaulty || fault.isServed) {
      provider.served.inputTokens += whole.usage.inputTokens;
      provider.served.outputTokens += whole.usage.outputTokens;
    }
    if (isFaulty) fault.send(response, wire, whole);
    else sendWhole(response, wire, whole);
  };
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => response.destroy(error as Error));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return Object.assign(provider, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  });
}

function answerOf(turn: number, turns: number): FilledAnswer {
  const isLast = turn >= turns;
  const call = { id: `call-${turn}`, name: 'step', arguments: JSON.stringify({ number: turn, text: 'x'.repeat(40) }) };
  return {
    id: `answer-${turn}`,
    model: 'm',
    text: isLast ? 'done' : 'Next ✓',
    reasoning: '',
    calls: isLast ? [] : [call],
    stopReason: isLast ? 'stop' : 'tool-calls',
    usage: { inputTokens: 1_000 + turn, outputTokens: 30, cachedInputTokens: 0 },
  };
}

/** All layers of a process that calls its provider itself, with short waits. */
function modelAt(type: ProviderType, url: string, ledger: ReturnType<typeof scriptedLedger>): Model {
  const baseUrl = type === 'anthropic' ? url : `${url}/v1`;
  const { pipeline, resolve, embedding } = openModels(
    { providers: [{ name: 'p', type, baseUrl }], aliases: {} },
    {
      clock: systemClock,
      random: () => 0.5,
      environment: {},
      limits: { idleTimeoutMs: 150, maxBytes: 50_000 },
      retry: { initialWaitMs: 1, maxWaitMs: 50 },
    },
  );
  return withNames(compose(pipeline, [metering({ ids: ulids, embedding }), calledBy({ id: 'a', ledger })]), resolve);
}

/** Delivers the message until it is answered, as an inbox does. Returns the numbers that the tool got. */
async function conversation(type: ProviderType, provider: FaultyProvider, ledger: ReturnType<typeof scriptedLedger>) {
  const numbers: unknown[] = [];
  const step = (input: unknown): string => {
    numbers.push((input as { number?: unknown }).number);
    return 'ok';
  };
  const { send } = scriptedLoop([], { step }, { model: modelAt(type, provider.url, ledger) });
  const agent = anAgent({ turns: 1_000, steps: 1_000 });
  agent.spec.model.primary = 'p/m';
  for (let delivery = 1; delivery <= MAX_DELIVERIES; delivery += 1) {
    try {
      const { reply } = await send('count', { message: 'm-1', agent, milliseconds: 60_000 });
      return { numbers, reply };
    } catch (error) {
      assert.ok(isTemperError(error) && error.code.startsWith('TEMPER_MODEL_'), String(error));
    }
  }
  return assert.fail(`no answer after ${MAX_DELIVERIES} deliveries`);
}

function chargedOf({ log }: ReturnType<typeof scriptedLedger>) {
  const total = { inputTokens: 0, outputTokens: 0 };
  for (const { reserved, used = reserved } of log) {
    total.inputTokens += used.inputTokens ?? 0;
    total.outputTokens += used.outputTokens ?? 0;
  }
  return total;
}

for (const [index, fault] of PROVIDER_FAULTS.entries()) {
  describe(`a provider with ${fault.name}`, () => {
    for (const [wireIndex, [type, wire]] of WIRES.entries()) {
      const turns = wireIndex === index % WIRES.length ? TURNS : SHORT_TURNS;
      it(`over ${type}, ${turns} turns call each tool once with whole arguments, and cost what was served`, async () => {
        await using provider = await faultyProvider(wire, fault, turns);
        const ledger = scriptedLedger();
        const { numbers, reply } = await conversation(type, provider, ledger);
        assert.match(reply, /done$/);
        assert.deepEqual(
          numbers,
          Array.from({ length: turns }, (_, number) => number),
        );
        assert.equal(provider.faults, Math.ceil((turns - 1) / FAULT_EVERY), 'the faults happened');
        const charged = chargedOf(ledger);
        if (fault.charge === 'Exact') assert.deepEqual(charged, provider.served);
        assert.ok(charged.inputTokens >= provider.served.inputTokens, JSON.stringify([charged, provider.served]));
        assert.ok(charged.outputTokens >= provider.served.outputTokens, JSON.stringify([charged, provider.served]));
      });
    }
  });
}
