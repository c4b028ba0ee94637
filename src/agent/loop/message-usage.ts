import { TemperError } from '../../lib/errors.ts';
import type { TokenUsage } from '../../models/port.ts';

/** What the processing of one message used so far: the turns, the tool calls and the answers of the model. */
export interface MessageUsage {
  turns: number;
  toolCalls: number;
  usage: TokenUsage;
}

export function addUsage(total: TokenUsage, added: TokenUsage): void {
  total.inputTokens += added.inputTokens;
  total.outputTokens += added.outputTokens;
  total.cachedInputTokens += added.cachedInputTokens;
}

/**
 * The same failure with the usage of the message in `details.used`, so that an error or an interruption does not hide it. An error
 * of another class is a defect and stays as it is.
 */
export function withUsage(error: unknown, { turns, toolCalls, usage }: MessageUsage): unknown {
  if (!(error instanceof TemperError)) return error;
  const used: MessageUsage = { turns, toolCalls, usage: { ...usage } };
  const { code, message, retry } = error;
  return new TemperError(code, message, { cause: error, retry, details: { ...error.details, used } });
}
