import type { CallOptions } from '../../lib/call-options.ts';
import { TemperError } from '../../lib/errors.ts';
import type { ModelMessage, ToolCall } from '../../models/port.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';
import { codeOffer } from '../code/code-prompt.ts';
import { executeCode } from '../code/execute-code.ts';
import { answerError, askAtTurn, type EndedTurn, endTurn } from '../hooks/turn-hooks.ts';
import { addedByProvider } from '../history/origins.ts';
import { addUsage } from '../loop/message-usage.ts';
import type { TurnOutcome } from '../message.ts';
import type {
  CallsOutcome,
  TaskAnswer,
  ProviderDirective,
  ProviderEvent,
  ProviderHost,
  ProviderOffer,
  ProviderReport,
} from '../provider/port.ts';
import { answerKey } from '../session/resume.ts';
import { callTools, type Limit } from './call-tools.ts';
import type { MessageHostDeps, MessageState } from './message-state.ts';

type FailedCall = Extract<ProviderEvent, { type: 'error' }>;

/** The policy around a provider, for one message. */
export class MessageHost implements ProviderHost {
  readonly #deps: MessageHostDeps;
  readonly #state: MessageState;
  readonly #op: CallOptions;
  #visible: readonly ToolDescriptor[] | undefined;
  #limit: Limit | undefined;
  #format: 'json' | undefined;

  constructor(deps: MessageHostDeps, state: MessageState, op: CallOptions) {
    this.#deps = deps;
    this.#state = state;
    this.#op = op;
  }

  async offer(): Promise<ProviderOffer> {
    const { caller, code, prompt, order, agent, disclosure, historyWriter } = this.#state;
    const visible = this.#deps.invoker.visible(caller);
    this.#visible = visible;
    if (code !== undefined) return codeOffer(agent.spec, prompt, order, visible);
    const offer = await disclosure?.offer(visible, historyWriter.items, this.#op);
    return offer ?? { prompt, tools: order.sort(visible) };
  }

  async history(): Promise<readonly ModelMessage[]> {
    return this.#state.historyWriter.items;
  }

  async append(items: ModelMessage[], deferrable: boolean): Promise<void> {
    this.#state.answers += items.filter(({ role }) => role === 'assistant').length;
    const marks = this.#deps.taint.marks(this.#state.caller.session);
    const { historyWriter } = this.#state;
    const added = items.map((item) => addedByProvider(item, historyWriter.items));
    await historyWriter.write(added, { ...marks, deferrable });
  }

  async invoke(calls: ToolCall[]): Promise<CallsOutcome> {
    const { caller, key, task, answers, code } = this.#state;
    const op = { ...this.#op, key: answerKey(key, task.base, answers) };
    const visible = this.#visible ?? this.#deps.invoker.visible(caller);
    const run = code === undefined ? callTools(this.#deps, this.#state, calls, visible, op) : this.#runCode(calls, op);
    const { items, parked, reply, limit } = await run;
    if (parked !== undefined) {
      this.#state.events({ type: 'turn-parked', requests: [...parked] });
      return { items, parked: [...parked] };
    }
    if (reply !== undefined) return { items, reply };
    return limit === undefined ? { items } : { items, ...this.#conclude(limit) };
  }

  #runCode(calls: ToolCall[], op: CallOptions): ReturnType<typeof executeCode> {
    return executeCode(this.#deps, this.#state, calls, op);
  }

  async hook(event: ProviderEvent): Promise<ProviderDirective | undefined> {
    const { events, task } = this.#state;
    switch (event.type) {
      case 'turn-start':
        return this.#startTurn(event.turnNumber);
      case 'message':
        events({ type: 'message', text: event.text, delta: false });
        return this.#observe({ ...event, delta: false });
      case 'reasoning':
        events({ type: 'reasoning', text: event.text });
        return this.#observe(event);
      case 'turn-end':
        return this.#limit === undefined ? this.#endTurn(event) : undefined;
      case 'error':
        return this.#limit === undefined ? this.#answerError(event) : undefined;
      case 'retry': {
        const { code, attempt, delayMs } = event;
        events({ type: 'retry', model: task.config.model, attempt, code, milliseconds: delayMs });
        return this.#observe({ type: 'retry', attempt, delayMs });
      }
    }
  }

  report(report: ProviderReport): void {
    if (report.type !== 'usage') return this.#state.events(report);
    this.#state.turns += report.turns;
    addUsage(this.#state.usage, report);
  }

  /** What became of the message. Throws the limit that ended it. */
  outcomeOf({ reply, finishReason, parked }: TaskAnswer): TurnOutcome {
    if (this.#limit !== undefined) {
      const { code, reason } = this.#limit;
      throw new TemperError(code, `${reason}; ask for less at once or raise spec.limits`, { details: { reply } });
    }
    return {
      reply,
      finishReason,
      ...(this.#format === undefined ? {} : { format: this.#format }),
      ...(parked === undefined ? {} : { parked }),
    };
  }

  async #startTurn(turnNumber: number): Promise<ProviderDirective | undefined> {
    const { turns, limits, events } = this.#state;
    if (this.#limit === undefined && turns >= limits.turns) {
      const reason = `all ${limits.turns} turns for this message are used`;
      return this.#conclude({ code: 'TEMPER_TURN_LIMIT', reason });
    }
    events({ type: 'turn-start', turn: turnNumber });
    return this.#observe({ type: 'turn-start', turnNumber });
  }

  async #endTurn(turn: EndedTurn): Promise<ProviderDirective | undefined> {
    const { directive, format } = await endTurn(this.#deps, this.#state, turn, this.#op);
    this.#format = format;
    return directive;
  }

  async #answerError(event: FailedCall): Promise<ProviderDirective | undefined> {
    const { directive, format } = await answerError(this.#deps, this.#state, event, this.#op);
    this.#format = format;
    return directive;
  }

  /** Shows an event to the hooks, which have nothing to decide about it. The closing turn runs no hooks. */
  async #observe(event: Parameters<typeof askAtTurn>[2]): Promise<undefined> {
    if (this.#limit === undefined) await askAtTurn(this.#deps, this.#state, event, this.#op);
  }

  /** From now on no call is made. The first limit counts. */
  #conclude(limit: Limit): { conclude: string } {
    this.#limit ??= limit;
    this.#state.isConcluding = true;
    const { code, reason } = this.#limit;
    return {
      conclude: `[${code}: ${reason}. No further tool is called. Say what you found, and what is missing.]`,
    };
  }
}
