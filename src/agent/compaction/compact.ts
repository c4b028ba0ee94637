import type { CallOptions } from '../../lib/call-options.ts';
import type { ModelMessage, TokenUsage } from '../../models/port.ts';
import type { EventSink } from '../../tools/events.ts';
import { addUsage } from '../loop/message-usage.ts';
import type { ModelCallDeps } from '../loop/model-call.ts';
import { originsOf } from '../history/origins.ts';
import { type ContextBudget, contextFill } from '../history/context-window.ts';
import type { HistoryWriter } from '../session/history-writer.ts';
import { itemsForModel, planCompaction, summaryItem } from './summary-item.ts';
import { summarize } from './summarize.ts';

/** At the start of a message, more items are replaced by a summary even if they fit. */
const MAX_ITEMS = 30;
const MAX_FILL = 0.7;
/** Above this fill fewer items stay. */
const HIGH_FILL = 0.9;
const KEPT_ITEMS = 10;
const KEPT_ITEMS_AT_HIGH_FILL = 4;

/** What is known about the compactions of one message. */
export interface CompactionState {
  /** The number of items was checked, which happens once per message, and not when it is resumed. */
  isCounted: boolean;
  /** The model gave no summary; it is not asked again in this message. */
  hasFailed: boolean;
}

/** The part of a conversation that its compaction needs. */
export interface LongConversation {
  readonly compaction: CompactionState;
  readonly historyWriter: HistoryWriter;
  readonly events: EventSink;
  readonly limits: { readonly modelTimeoutMs: number };
  readonly model: string;
  /** The current message, and the number of items before it. */
  readonly message: { readonly text: string };
  readonly base: number;
  readonly messages: ModelMessage[];
  readonly usage: TokenUsage;
}

/**
 * Replaces the older part of the conversation by a summary that the model writes, when it has more than 30 items at the start of a message,
 * or fills more than 70 % of the window. The summary is stored as an item of the session. Without a summary the conversation stays as it is,
 * and the context window is fitted by removing messages. Returns whether the conversation changed.
 */
export async function compactHistory(
  deps: ModelCallDeps,
  conversation: LongConversation,
  { budget, isTainted }: { budget: ContextBudget; isTainted: boolean },
  op: CallOptions,
): Promise<boolean> {
  const { compaction, historyWriter, events, limits, model, message } = conversation;
  const fill = contextFill(conversation.messages, budget);
  const isLong = !compaction.isCounted && itemsForModel(historyWriter.items).length > MAX_ITEMS;
  compaction.isCounted = true;
  if (compaction.hasFailed || (!isLong && fill <= MAX_FILL)) return false;
  const plan = planCompaction(historyWriter.items, fill > HIGH_FILL ? KEPT_ITEMS_AT_HIGH_FILL : KEPT_ITEMS);
  if (plan === undefined) return false;
  const { windowTokens } = budget;
  const used = (usage: TokenUsage): void => addUsage(conversation.usage, usage);
  const options = { model, windowTokens, modelTimeoutMs: limits.modelTimeoutMs, events, used };
  const summary = await summarize(deps, plan.older, options, op);
  if (summary === undefined) {
    compaction.hasFailed = true;
    events({ type: 'warning', code: 'no-summary', message: 'the model gave no summary of the earlier messages' });
    return false;
  }
  const task = plan.items > conversation.base ? message.text : undefined;
  const item = summaryItem(summary, plan.items, task, originsOf(plan.older));
  await historyWriter.write([item], { tainted: isTainted, deferrable: true });
  events({ type: 'compaction', items: plan.items, characters: summary.length });
  return true;
}
