import type { NamedModelsConfig, NamedModelSet } from '../../models/named-models.ts';
import type { ModelPipeline, ResolvedModel } from '../../models/pipeline.ts';
import { CallMeter, type ChargedTokens } from '../../models/charge/call-meter.ts';
import { requestSize } from '../../models/charge/request-size.ts';
import type { JsonObject } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import { costInMicros, DEFAULT_PRICE } from '../../models/price.ts';

/** What the models of a run have used: those of the agent, of its judge and of its reviewers. */
export interface ModelUsage {
  tokens: number;
  /** In millionths of a dollar. */
  costMicros: number;
  /** The used models that have no configured price, and so the default price. */
  unpriced: Set<string>;
  /** Answers that ended before the provider reported their usage. */
  unfinished: number;
}

/** The models, with a counter of their use: of what the ledger charges for each answer, which may be more than its provider counted. */
export function countUsage(
  models: NamedModelSet,
  config: NamedModelsConfig,
): { models: NamedModelSet; usage: ModelUsage } {
  const usage: ModelUsage = { tokens: 0, costMicros: 0, unpriced: new Set(), unfinished: 0 };
  const add = (model: ResolvedModel, used: ChargedTokens): void => {
    usage.tokens += used.inputTokens + used.outputTokens;
    usage.costMicros += costInMicros(model.price, used);
    if (!hasPrice(config, model)) usage.unpriced.add(model.id);
  };
  const pipeline: ModelPipeline = {
    async *stream(request, op) {
      // Counted from the start, so that the count is right at any time, also while an interrupted answer still ends.
      usage.unfinished += 1;
      const meter = new CallMeter(requestSize(request), request.maxOutputTokens);
      let hasStarted = false;
      try {
        for await (const event of models.pipeline.stream(request, op)) {
          hasStarted = true;
          meter.receive(event);
          if (event.type === 'end') {
            usage.unfinished -= 1;
            meter.counted(event.usage, true);
            add(request.model, meter.charged());
          }
          yield event;
        }
      } catch (error) {
        // The provider rejected the call before it did any work.
        if (!hasStarted && !op.signal.aborted) usage.unfinished -= 1;
        throw error;
      }
    },
    embed: (texts, op) => models.pipeline.embed(texts, op),
  };
  return { models: { ...models, pipeline }, usage };
}

/** A resolved model has the default price when none is configured. */
function hasPrice({ providers }: NamedModelsConfig, { provider, model }: ResolvedModel): boolean {
  const listed = providers.find(({ name }) => name === provider)?.models?.find(({ name }) => name === model);
  return listed?.inputPrice !== undefined && listed.outputPrice !== undefined;
}

interface WorkCounts {
  turns: number;
  toolCalls: number;
}

/** The same as the line of a summary, for JSON. The cost is in millionths of a dollar; a replayed run has none. */
export function usageObject(
  { turns, toolCalls }: WorkCounts,
  { tokens, costMicros, unpriced, unfinished }: ModelUsage,
  isReplayed: boolean,
): JsonObject {
  return {
    turns,
    toolCalls,
    tokens,
    ...(isReplayed ? {} : { costMicros, modelsWithDefaultPrice: [...unpriced] }),
    ...(unfinished === 0 ? {} : { unfinishedAnswers: unfinished }),
  };
}

/** The line of a summary, such as `Used 7 turns, 1 tool call, 11,482 tokens, $0.0042.` */
export function usageLine(
  { turns, toolCalls }: WorkCounts,
  { tokens, costMicros, unpriced, unfinished }: ModelUsage,
  isReplayed: boolean,
): string {
  const parts = [counted(turns, 'turn'), counted(toolCalls, 'tool call'), counted(tokens, 'token')];
  if (tokens > 0 && !isReplayed) parts.push(`${dollars(costMicros)}${defaultPriceNote(unpriced)}`);
  const replayed = isReplayed ? ' (replayed)' : '';
  const open = unfinished === 0 ? '' : `, and ${counted(unfinished, 'unfinished answer')} of unknown size`;
  return `Used ${parts.join(', ')}${replayed}${open}.`;
}

/** What the quotas charge for a model without a price is not what its provider bills. */
function defaultPriceNote(unpriced: ReadonlySet<string>): string {
  if (unpriced.size === 0) return '';
  const { inputPrice, outputPrice } = DEFAULT_PRICE;
  const names = [...unpriced].map((name) => printable(name, 128)).join(', ');
  return ` (${names} without a price: $${inputPrice} per million input tokens, $${outputPrice} output)`;
}

export function counted(count: number, noun: string): string {
  return `${count.toLocaleString('en-US')} ${noun}${count === 1 ? '' : 's'}`;
}

/** Four decimals below a dollar, so that small costs are not shown as zero. */
export function dollars(micros: number): string {
  const amount = micros / 1_000_000;
  const digits = amount !== 0 && amount < 1 ? 4 : 2;
  return `$${amount.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })}`;
}
