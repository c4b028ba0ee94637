import type { MessageCall } from '../../bus/port.ts';
import { systemClock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { ulids } from '../../lib/ids.ts';
import type { Json } from '../../lib/json.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import { memoryRecordStore, type RecordStore } from '../../lib/record-store.ts';
import type { Amounts, Ledger } from '../../ledger/port.ts';
import { meteredStub } from '../../models/pipeline.testing.ts';
import type { Model, ModelEvent, ModelRequest, ToolCall } from '../../models/port.ts';
import type { CallerContext, Invoker, NestedCall, ToolDescriptor, ToolResult } from '../../tools/contract.ts';
import type { AgentEvent } from '../../tools/events.ts';
import { type AgentLoop, type AgentLoopDeps, createAgentLoop } from './loop.ts';
import { createLoopProvider } from './turn-loop.ts';
import type { RunningAgent } from '../message.ts';
import { overJson } from '../provider/json-boundary.testing.ts';
import { createRecordSessionStore } from '../session/session-store.ts';

/** Test support for the agent loop: only the model, the tools and the ledger are fakes. */

/** One model response: events, or a function that creates them from the request. */
export type ScriptedAnswer =
  | ModelEvent[]
  | ((request: ModelRequest, op: CallOptions) => ModelEvent[] | AsyncIterable<ModelEvent>);

export function says(text: string, stopReason: 'stop' | 'length' | 'refusal' = 'stop'): ModelEvent[] {
  const spoken: ModelEvent[] = text === '' ? [] : [{ type: 'text', text }];
  return [...spoken, { type: 'end', stopReason, usage: USAGE, model: 'scripted' }];
}

export function calls(...toolCalls: [name: string, input: Json | string, id?: string][]): ModelEvent[] {
  const made = toolCalls.map(([name, input, id], index): ModelEvent => {
    const call: ToolCall = {
      id: id ?? `call-${index}`,
      name,
      arguments: typeof input === 'string' ? input : JSON.stringify(input),
    };
    return { type: 'tool-call', call };
  });
  return [...made, { type: 'end', stopReason: 'tool-calls', usage: USAGE, model: 'scripted' }];
}

const USAGE = { inputTokens: 10, outputTokens: 5, cachedInputTokens: 0 };

/** A model that returns the answers in order, repeats the last one, and records the requests. */
export function scriptedModel(answers: ScriptedAnswer[]): Model & { requests: ModelRequest[] } {
  const requests: ModelRequest[] = [];
  return {
    requests,
    async *stream(request, op) {
      requests.push(structuredClone(request));
      const answer = answers[Math.min(requests.length, answers.length) - 1] ?? [];
      yield* typeof answer === 'function' ? answer(request, op) : answer;
    },
    async embed() {
      throw new TemperError('TEMPER_MODEL_NOT_FOUND', 'the scripted model has no embeddings');
    },
  };
}

export type ScriptedTool = (input: Json, caller: CallerContext, op: CallOptions) => Promise<Json> | Json;

/** A scripted tool throws it when its call waits for the decision about this request. */
export class WaitsFor extends Error {
  readonly request: string;

  constructor(request: string) {
    super(`waits for ${request}`);
    this.request = request;
  }
}

/** An invoker that calls functions. A TemperError becomes a failed result; any other error is a failure of the engine. */
export function scriptedInvoker(
  tools: Record<string, ScriptedTool>,
  category: ToolDescriptor['category'] = 'other',
): Invoker {
  const invoke = async (name: string, input: Json, caller: CallerContext, op: CallOptions): ReturnType<NestedCall> => {
    const tool = tools[name];
    try {
      if (tool === undefined) throw new TemperError('TEMPER_TOOL_NOT_FOUND', `no tool is named "${name}"`);
      return { ok: true, tool: name, output: await tool(input, caller, op), milliseconds: 1 };
    } catch (error) {
      if (!(error instanceof TemperError)) throw error;
      const { rule } = error.details;
      const failure = { code: error.code, message: error.message, ...(typeof rule === 'string' ? { rule } : {}) };
      return { ok: false, tool: name, error: failure, milliseconds: 1 } satisfies ToolResult;
    }
  };
  return {
    invoke,
    async invokeOrPark(name, ...call) {
      try {
        return await invoke(name, ...call);
      } catch (error) {
        if (error instanceof WaitsFor) return { parked: error.request, tool: name };
        throw error;
      }
    },
    visible: () => Object.keys(tools).map((name) => descriptor(name, category)),
  };
}

function descriptor(name: string, category: ToolDescriptor['category']): ToolDescriptor {
  return {
    name,
    description: `The tool ${name}.`,
    inputSchema: { type: 'object' },
    category,
    action: 'code:read',
    sideEffects: false,
    locality: 'Local',
  };
}

/** A ledger that grants a number of model calls and records reservations and commits. */
export function scriptedLedger(
  callsGranted = Number.POSITIVE_INFINITY,
): Ledger & { log: { reserved: Amounts; used?: Amounts }[] } {
  const log: { reserved: Amounts; used?: Amounts }[] = [];
  return {
    log,
    async reserve(reserved) {
      if (log.length >= callsGranted) {
        return {
          granted: false,
          quota: 'spec.quotas.tokensPerHour',
          limit: 1,
          used: 1,
          resumesAt: '2026-01-01T00:00:00Z',
        };
      }
      log.push({ reserved });
      return { granted: true, id: String(log.length - 1) };
    },
    async commit(id, used) {
      const entry = log[Number(id)];
      if (entry !== undefined) entry.used = used;
    },
    usage: () => Promise.reject(new Error('not kept')),
  };
}

export interface LoopFixture {
  loop: AgentLoop;
  model: Model & { requests: ModelRequest[] };
  events: AgentEvent[];
  records: RecordStore;
  ledger: ReturnType<typeof scriptedLedger>;
  send: (
    text: string,
    options?: {
      session?: string;
      signal?: AbortSignal;
      milliseconds?: number;
      agent?: RunningAgent;
      message?: string;
      call?: MessageCall;
      onEvent?: (event: AgentEvent) => void;
    },
  ) => ReturnType<AgentLoop['handle']>;
}

/** Creates an agent loop with a scripted model. */
export function scriptedLoop(
  answers: ScriptedAnswer[],
  tools: Record<string, ScriptedTool> = {},
  deps: Partial<AgentLoopDeps> & { records?: RecordStore; ledger?: ReturnType<typeof scriptedLedger> } = {},
): LoopFixture {
  const model = scriptedModel(answers);
  const records = deps.records ?? memoryRecordStore();
  const ledger = deps.ledger ?? scriptedLedger();
  const events: AgentEvent[] = [];
  const metered = deps.model ?? meteredStub(model, { ledger, ids: ulids });
  const { clock = systemClock, contextTokens = () => 128_000 } = deps;
  const loop = createAgentLoop({
    model: metered,
    // So that every test of the loop shows that only JSON crosses the boundary.
    provider: overJson(createLoopProvider({ model: metered, clock, contextTokens })),
    invoker: scriptedInvoker(tools),
    sessions: createRecordSessionStore(records, systemClock, { agent: 'a', namespace: 'n' }),
    clock: systemClock,
    ...deps,
  });
  return {
    loop,
    model,
    events,
    records,
    ledger,
    send(text, options = {}) {
      const op: CallOptions = {
        signal: options.signal ?? new AbortController().signal,
        deadline: systemClock.monotonic() + (options.milliseconds ?? 10_000),
        key: ulids.next('message'),
      };
      const message = {
        session: options.session ?? 's-1',
        rootMessage: 'root-1',
        text,
        ...(options.message === undefined ? {} : { message: options.message }),
        ...(options.call === undefined ? {} : { call: options.call }),
      };
      return loop.handle(
        message,
        options.agent ?? anAgent(),
        (event) => {
          events.push(event);
          options.onEvent?.(event);
        },
        op,
      );
    },
  };
}

export function anAgent(limits: NonNullable<RunningAgent['spec']['limits']> = {}): RunningAgent {
  return {
    name: 'analyst',
    namespace: 'team-a',
    policyName: 'standard',
    level: 'restricted',
    spec: {
      trustPolicyRef: { name: 'standard' },
      model: { primary: 'scripted/model' },
      prompt: { system: 'You are careful.' },
      limits,
    },
  };
}
