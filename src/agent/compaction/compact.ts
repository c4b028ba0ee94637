import type { CallOptions } from '../../lib/call-options.ts';
import type { ModelMessage, TokenUsage } from '../../models/port.ts';
import type { ModelCallDeps } from '../loop/model-call.ts';
import { type ContextBudget, contextFill } from '../history/context-window.ts';
import type { ProviderHost, ProviderNote, ProviderTask } from '../provider/port.ts';
import { itemsForModel, planCompaction, summaryItem } from './summary-item.ts';
import { summarize } from './summarize.ts';

/** At the start of a message, more items are replaced by a summary even if they fit. */
const MAX_ITEMS = 30;
const MAX_FILL = 0.7;
/** Above this fill fewer items stay. */
const HIGH_FILL = 0.9;
const MAX_RECENT_ITEMS = 10;
const MAX_RECENT_ITEMS_AT_HIGH_FILL = 4;

/** What is known about the compactions of one message. */
export interface CompactionState {
  /** The number of items was checked, which happens once per message, and not when it is resumed. */
  isCounted: boolean;
  /** The model gave no summary; it is not asked again in this message. */
  hasFailed: boolean;
}

/** The part of a conversation that its compaction needs. */
export interface LongConversation {
  readonly task: ProviderTask;
  readonly host: ProviderHost;
  readonly compaction: CompactionState;
  readonly messages: ModelMessage[];
}

/**
 * Replaces the older part of the conversation by a summary that the model writes, when it has more than 30 items at the start of a message,
 * or fills more than 70 % of the window. The summary is stored as an item of the session. Without a summary the conversation stays as it is,
 * and the context window is fitted by removing messages. Returns whether the conversation changed.
 */
export async function compactHistory(
  deps: ModelCallDeps,
  { task, host, compaction, messages }: LongConversation,
  budget: ContextBudget,
  op: CallOptions,
): Promise<boolean> {
  const fill = contextFill(messages, budget);
  if (compaction.hasFailed || (compaction.isCounted && fill <= MAX_FILL)) return false;
  const items = await host.history();
  const isLong = !compaction.isCounted && itemsForModel(items).length > MAX_ITEMS;
  compaction.isCounted = true;
  if (!isLong && fill <= MAX_FILL) return false;
  const plan = planCompaction(items, fill > HIGH_FILL ? MAX_RECENT_ITEMS_AT_HIGH_FILL : MAX_RECENT_ITEMS);
  if (plan === undefined) return false;
  const { model, modelTimeoutMs } = task.config;
  const options = {
    model,
    windowTokens: budget.windowTokens,
    modelTimeoutMs,
    events: (note: ProviderNote): void => host.report(note),
    used: (usage: TokenUsage): void => host.report({ type: 'usage', turns: 0, ...usage }),
  };
  const summary = await summarize(deps, plan.older, options, op);
  if (summary === undefined) {
    compaction.hasFailed = true;
    const message = 'the model gave no summary of the earlier messages';
    host.report({ type: 'warning', code: 'no-summary', message });
    return false;
  }
  await host.append([summaryItem(summary, plan.items, plan.items > task.base ? task.message : undefined)], true);
  host.report({ type: 'compaction', items: plan.items, characters: summary.length });
  return true;
}
