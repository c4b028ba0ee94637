import { matchesStars } from '../../lib/text/star-pattern.ts';
import { closingToolResults, turnNumber, userMessages, type ReplayConversation } from './conversation.ts';
import type { ReplayCondition, ReplayRule } from './script/script.ts';

type Predicate = (condition: ReplayCondition, conversation: ReplayConversation) => boolean;

/** One predicate per member of the condition; an absent member always matches. */
const PREDICATES: readonly Predicate[] = [
  ({ system }, conversation) => system === undefined || conversation.system.includes(system),
  ({ lastUser }, conversation) =>
    lastUser === undefined || (userMessages(conversation).at(-1)?.text.includes(lastUser) ?? false),
  ({ last }, conversation) => last === undefined || conversation.messages.at(-1)?.role === last,
  ({ lastTool }, conversation) => lastTool === undefined || endsWithToolResult(lastTool, conversation),
  ({ turn }, conversation) => turn === undefined || turnNumber(conversation) === turn,
  ({ model }, conversation) => model === undefined || matchesStars(model, conversation.model),
  ({ tools }, conversation) => tools === undefined || tools.every((name) => conversation.tools.includes(name)),
];

/** True if every member of the condition matches. */
function matches(condition: ReplayCondition | undefined, conversation: ReplayConversation): boolean {
  return condition === undefined || PREDICATES.every((holds) => holds(condition, conversation));
}

function endsWithToolResult(
  condition: NonNullable<ReplayCondition['lastTool']>,
  conversation: ReplayConversation,
): boolean {
  return closingToolResults(conversation).some(
    (result) =>
      (condition.name === undefined || result.name === condition.name) &&
      (condition.contains === undefined || result.text.includes(condition.contains)) &&
      (condition.isError === undefined || result.isError === condition.isError),
  );
}

/** Counts how often each rule has answered in each conversation. Evicts the least recently used conversation above the capacity. */
export class RuleUseCounter {
  readonly #uses = new Map<string, Map<number, number>>();
  readonly #capacity = 1_000;

  of(conversation: string, rule: number): number {
    return this.#uses.get(conversation)?.get(rule) ?? 0;
  }

  count(conversation: string, rule: number): void {
    const uses = this.#uses.get(conversation) ?? new Map<number, number>();
    uses.set(rule, (uses.get(rule) ?? 0) + 1);
    this.#uses.delete(conversation);
    this.#uses.set(conversation, uses);
    const oldest = this.#uses.keys().next();
    if (this.#uses.size > this.#capacity && oldest.value !== undefined) this.#uses.delete(oldest.value);
  }
}

/** Index of the first rule that matches and has not reached its `times` in this conversation. */
export function firstMatch(
  rules: readonly ReplayRule[],
  conversation: ReplayConversation,
  usesOf: (rule: number) => number,
): number | undefined {
  const index = rules.findIndex(
    (rule, position) => matches(rule.when, conversation) && usesOf(position) < (rule.times ?? Number.POSITIVE_INFINITY),
  );
  return index === -1 ? undefined : index;
}
