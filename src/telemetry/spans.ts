import { type Attributes, context, type Span, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { isTemperError } from '../lib/errors.ts';
import { contextOf } from './traceparent.ts';

const SCOPE = 'temper';

/** Span names, by OpenTelemetry's semantic conventions for messaging and generative AI. */
export const SPANS = {
  ask: 'temper send',
  send: 'send temper-inbox',
  receive: 'receive temper-inbox',
  process: 'process temper-inbox',
  reply: 'send temper-events',
  invokeAgent: (agent: string) => `invoke_agent ${agent}`,
  chat: (model: string) => `chat ${model}`,
  executeTool: (tool: string) => `execute_tool ${tool}`,
  review: 'review tool',
} as const;

/** Attribute names. Prompts, arguments and results are never attributes. */
export const ATTRIBUTES = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  agent: 'gen_ai.agent.name',
  conversation: 'gen_ai.conversation.id',
  requestModel: 'gen_ai.request.model',
  responseModel: 'gen_ai.response.model',
  finishReasons: 'gen_ai.response.finish_reasons',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  cachedInputTokens: 'gen_ai.usage.cache_read.input_tokens',
  cacheCreationInputTokens: 'gen_ai.usage.cache_creation.input_tokens',
  tool: 'gen_ai.tool.name',
  messagingSystem: 'messaging.system',
  messagingName: 'messaging.operation.name',
  messagingType: 'messaging.operation.type',
  messagingDestination: 'messaging.destination.name',
  messagingId: 'messaging.message.id',
  rootMessage: 'temper.message.root_id',
  reviewOutcome: 'temper.review.outcome',
  errorType: 'error.type',
} as const;

/** Runs the work in a new active span, which ends with it. Rethrows its errors; the span records only their code. */
export function inSpan<T>(
  name: string,
  options: { kind?: keyof typeof SpanKind; attributes?: Attributes },
  work: (span: Span) => Promise<T>,
): Promise<T> {
  const settings = { kind: SpanKind[options.kind ?? 'INTERNAL'], attributes: options.attributes ?? {} };
  return trace.getTracer(SCOPE).startActiveSpan(name, settings, async (span) => {
    try {
      return await work(span);
    } catch (error) {
      span.setAttribute(ATTRIBUTES.errorType, isTemperError(error) ? error.code : 'TEMPER_INTERNAL');
      span.setStatus({ code: SpanStatusCode.ERROR });
      throw error;
    } finally {
      span.end();
    }
  });
}

/** A span whose work is not a single function. */
export interface OpenSpan {
  set(attributes: Attributes): void;
  /** `failure`: the error code when the work failed. */
  end(failure?: string): void;
}

/** Starts a child of the active span; the new span does not become active. */
export function startSpan(name: string, options: { kind: keyof typeof SpanKind; attributes: Attributes }): OpenSpan {
  const span = trace.getTracer(SCOPE).startSpan(name, { ...options, kind: SpanKind[options.kind] }, context.active());
  return {
    set: (attributes) => void span.setAttributes(attributes),
    end(failure) {
      if (failure !== undefined) {
        span.setAttribute(ATTRIBUTES.errorType, failure);
        span.setStatus({ code: SpanStatusCode.ERROR });
      }
      span.end();
    },
  };
}

/** Runs the work in the trace of the `traceparent`; without a valid one, spans of the work start a new trace. */
export function continueTrace<T>(traceparent: string | undefined, work: () => T): T {
  return context.with(contextOf(traceparent), work);
}

/** Iterates the items in the trace of the `traceparent`: each step runs in the trace, independent of the consumer's context. */
export async function* continueTraceOver<T>(
  traceparent: string | undefined,
  items: AsyncIterable<T>,
): AsyncGenerator<T> {
  const parent = contextOf(traceparent);
  const iterator = items[Symbol.asyncIterator]();
  let isDone = false;
  try {
    for (;;) {
      const step = await context.with(parent, () => iterator.next());
      if (step.done === true) {
        isDone = true;
        return;
      }
      yield step.value;
    }
  } catch (error) {
    isDone = true;
    throw error;
  } finally {
    if (!isDone) await iterator.return?.();
  }
}

type MessagingOperation = 'send' | 'receive' | 'process';

/** The attributes of a message that is sent through NATS; none of them contains its content. */
export function messagingAttributes(
  operation: MessagingOperation,
  destination: 'temper-inbox' | 'temper-events',
  facts: { message?: string; session: string; root?: string },
): Attributes {
  return {
    [ATTRIBUTES.messagingSystem]: 'nats',
    [ATTRIBUTES.messagingName]: operation,
    [ATTRIBUTES.messagingType]: operation,
    [ATTRIBUTES.messagingDestination]: destination,
    [ATTRIBUTES.conversation]: facts.session,
    ...(facts.message === undefined ? {} : { [ATTRIBUTES.messagingId]: facts.message }),
    ...(facts.root === undefined ? {} : { [ATTRIBUTES.rootMessage]: facts.root }),
  };
}
