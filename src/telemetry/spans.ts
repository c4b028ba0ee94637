import {
  type Attributes,
  context,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { isTemperError } from '../lib/errors.ts';

const SCOPE = 'temper';

/** Names of spans, after the conventions for generative AI where there is one. */
export const SPANS = {
  send: 'send message',
  deliver: 'deliver message',
  invokeAgent: (agent: string) => `invoke_agent ${agent}`,
  chat: (model: string) => `chat ${model}`,
  executeTool: (tool: string) => `execute_tool ${tool}`,
  review: (tool: string) => `review tool ${tool}`,
} as const;

/** Names of attributes. No prompt, argument or result is ever one. */
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
  tool: 'gen_ai.tool.name',
  toolCall: 'gen_ai.tool.call.id',
  message: 'temper.message.id',
  rootMessage: 'temper.message.root_id',
  errorType: 'error.type',
} as const;

/** Does the work in a span of its own, which ends with it. What it throws is thrown on; the span keeps its code alone. */
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

/** `traceparent` and `tracestate` of the current span; empty when nothing is traced. */
export function traceHeaders(): Record<string, string> {
  const headers: Record<string, string> = {};
  propagation.inject(context.active(), headers);
  return headers;
}

/** Does the work as a part of the trace that the headers name. Headers that name none begin a new one. */
export function continuingTrace<T>(headers: Readonly<Record<string, string>>, work: () => T): T {
  return context.with(propagation.extract(ROOT_CONTEXT, headers), work);
}
