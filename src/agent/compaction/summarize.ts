import type { CallOptions } from '../../lib/call-options.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { ModelMessage, TokenUsage } from '../../models/port.ts';
import { callModel, type ModelCallDeps } from '../loop/model-call.ts';
import type { NoteSink } from '../provider/port.ts';
import { summaryChunks, summaryRequest, summaryText } from './summary-request.ts';

const MAX_ATTEMPTS = 3;

export interface SummaryOptions {
  model: string;
  windowTokens: number;
  modelTimeoutMs: number;
  events: NoteSink;
  /** Called with what each call used, also when no summary comes of it. */
  used: (usage: TokenUsage) => void;
}

/**
 * Summarises messages with the model, chunk by chunk, with three attempts for each. Undefined when the model gives none: then the caller
 * goes on without a summary. Throws only when the caller itself was cancelled or is out of time.
 */
export async function summarize(
  deps: ModelCallDeps,
  messages: readonly ModelMessage[],
  options: SummaryOptions,
  op: CallOptions,
): Promise<string | undefined> {
  let summary = '';
  for (const chunk of summaryChunks(messages, options.windowTokens)) {
    const next = await summarizeChunk(deps, summaryRequest(chunk, summary), options, op);
    if (next === undefined) return undefined;
    summary = next;
  }
  return summary;
}

async function summarizeChunk(
  deps: ModelCallDeps,
  request: ReturnType<typeof summaryRequest>,
  { model, modelTimeoutMs, events, used }: SummaryOptions,
  op: CallOptions,
): Promise<string | undefined> {
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
    try {
      const answer = await callModel(deps, { model, ...request }, modelTimeoutMs, withoutText(events), op);
      used(answer.usage);
      const text = answer.stopReason === 'refusal' ? undefined : summaryText(answer.text);
      if (text !== undefined) return text;
    } catch (error) {
      if (op.signal.aborted || !isTemperError(error)) throw error;
      events({ type: 'error', code: error.code, message: `no summary: ${error.message}`, attempt });
      if (error.retry === 'never' && error.code !== 'TEMPER_MODEL_FORMAT') return undefined;
    }
  }
  return undefined;
}

/** The text of a summary is not what the agent says. */
function withoutText(events: NoteSink): NoteSink {
  return (event) => {
    if (event.type !== 'message') events(event);
  };
}
