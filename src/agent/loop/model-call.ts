import type { Clock } from '../../lib/clock.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import { type CallOptions, withTimeout } from '../../lib/call-options.ts';
import type {
  Model,
  ModelEvent,
  ModelRequest,
  RepeatedCall,
  StopReason,
  TokenUsage,
  ToolCall,
} from '../../models/port.ts';
import { ATTRIBUTES, inSpan, SPANS } from '../../telemetry/spans.ts';
import { untilAborted } from '../abort.ts';
import type { NoteSink } from '../provider/port.ts';

export interface ModelCallDeps {
  /** Charges each call; see `metering`. */
  model: Model;
  clock: Clock;
}

/** Of text, reasoning and tool calls together. Far above the output limit of any model, and below what a session can store. */
const MAX_ANSWER_CHARACTERS = 1_000_000;

export interface ModelAnswer {
  text: string;
  reasoning: string;
  /** Empty when the answer was truncated or refused, because its calls must not be executed. */
  toolCalls: ToolCall[];
  stopReason: StopReason;
  usage: TokenUsage;
}

/**
 * One model call: collects the streamed response. Text deltas are reported as they arrive. Throws TEMPER_QUOTA_EXCEEDED,
 * TEMPER_MODEL_*, TEMPER_TIMEOUT or TEMPER_CANCELLED.
 */
export function callModel(
  deps: ModelCallDeps,
  request: ModelRequest,
  milliseconds: number,
  events: NoteSink,
  op: CallOptions,
): Promise<ModelAnswer> {
  const attributes = { [ATTRIBUTES.operation]: 'chat', [ATTRIBUTES.requestModel]: request.model };
  return inSpan(SPANS.chat(request.model), { kind: 'CLIENT', attributes }, async (span) => {
    const answer = await collectAnswer(deps, request, milliseconds, events, op);
    span.setAttribute(ATTRIBUTES.inputTokens, answer.usage.inputTokens);
    span.setAttribute(ATTRIBUTES.outputTokens, answer.usage.outputTokens);
    span.setAttribute(ATTRIBUTES.finishReasons, [answer.stopReason]);
    return answer;
  });
}

async function collectAnswer(
  { model, clock }: ModelCallDeps,
  request: ModelRequest,
  milliseconds: number,
  events: NoteSink,
  op: CallOptions,
): Promise<ModelAnswer> {
  const progress: Progress = { text: '', reasoning: '', toolCalls: [], characters: 0 };
  try {
    const { stopReason, usage } = await withTimeout(op, clock, milliseconds, (inner) =>
      readStream(model, request, progress, events, inner),
    );
    const { text, reasoning, toolCalls } = progress;
    const executed = stopReason === 'length' || stopReason === 'refusal' ? [] : uniqueCalls(toolCalls);
    return { text, reasoning, toolCalls: executed, stopReason, usage };
  } catch (error) {
    throw toModelTimeout(error, op, request.model, milliseconds);
  }
}

interface Progress {
  text: string;
  reasoning: string;
  toolCalls: ToolCall[];
  characters: number;
}

type EndEvent = Extract<ModelEvent, { type: 'end' }>;

async function readStream(
  model: Model,
  request: ModelRequest,
  progress: Progress,
  events: NoteSink,
  op: CallOptions,
): Promise<EndEvent> {
  const onRepeat = (repeated: RepeatedCall): void => events({ type: 'retry', ...repeated });
  const iterator = model.stream(request, { ...op, onRepeat })[Symbol.asyncIterator]();
  let finished = false;
  try {
    for (;;) {
      const step = await untilAborted(iterator.next(), op.signal, `the answer of ${request.model}`);
      if (step.done === true) {
        finished = true;
        throw new TemperError('TEMPER_MODEL_FORMAT', `the answer of ${request.model} has no end`);
      }
      if (step.value.type === 'end') return step.value;
      progress.characters += charactersOf(step.value);
      if (progress.characters > MAX_ANSWER_CHARACTERS) throw tooLong(request.model);
      accumulate(step.value, progress, events);
    }
  } finally {
    // Not awaited: a stream that ignores its signal would block this call; its own error is already thrown or irrelevant.
    if (!finished) iterator.return?.().catch(() => undefined);
  }
}

function charactersOf(event: Exclude<ModelEvent, EndEvent>): number {
  if (event.type === 'tool-call') return event.call.name.length + event.call.arguments.length;
  return event.type === 'provider' ? 0 : event.text.length;
}

function tooLong(model: string): TemperError {
  const limit = MAX_ANSWER_CHARACTERS.toLocaleString('en-US');
  return new TemperError(
    'TEMPER_MODEL_FORMAT',
    `the answer of ${model} has more than ${limit} characters, which no session can store; lower spec.model.maxOutputTokens, or use another provider`,
  );
}

function accumulate(event: Exclude<ModelEvent, EndEvent>, progress: Progress, events: NoteSink): void {
  switch (event.type) {
    case 'text':
      progress.text += event.text;
      events({ type: 'message', text: event.text, delta: true });
      return;
    case 'reasoning':
      progress.reasoning += event.text;
      return;
    case 'tool-call':
      progress.toolCalls.push(event.call);
      return;
    case 'provider':
  }
}

/** Drops calls with a duplicate id, because only one of them could have a result. */
function uniqueCalls(calls: ToolCall[]): ToolCall[] {
  return calls.filter((call, index) => calls.findIndex((other) => other.id === call.id) === index);
}

/** A timeout of the model call becomes TEMPER_MODEL_TIMEOUT; a timeout of the whole message stays TEMPER_TIMEOUT. */
function toModelTimeout(error: unknown, op: CallOptions, model: string, milliseconds: number): unknown {
  if (!isTemperError(error, 'TEMPER_TIMEOUT') || op.signal.aborted) return error;
  return new TemperError('TEMPER_MODEL_TIMEOUT', `${model} did not finish within ${milliseconds} ms`, {
    cause: error,
    retry: 'backoff',
  });
}
