import type { ToolCategoryName } from '../../api/v1alpha1/actions.ts';
import type { Engine } from '../../engine/engine.ts';
import { builtInDescriptors } from '../../engine/built-in.ts';
import type { Clock } from '../../lib/clock.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { IdGenerator } from '../../lib/ids.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import type { TaskOutcome } from '../../policy/trust/evidence.ts';
import { outcomeOf } from '../../policy/trust/task-outcome.ts';
import type { AgentEvent, EventSink } from '../../tools/events.ts';
import { type LocalAgent, recordTask } from './local-tasks.ts';

export interface LocalTaskRecorderDeps {
  readonly records: RecordStore;
  readonly clock: Clock;
  readonly ids: IdGenerator;
  readonly agent: LocalAgent;
}

/** Records how each message of the user ends, and the categories of the tools that it called. */
export class LocalTaskRecorder {
  readonly #deps: LocalTaskRecorderDeps;
  readonly #categories = new Map(builtInDescriptors().map(({ name, category }) => [name, category]));
  readonly #called = new Set<ToolCategoryName>();

  constructor(deps: LocalTaskRecorderDeps) {
    this.#deps = deps;
  }

  /** The sink, of which this sees every event first. */
  observing(sink: EventSink): EventSink {
    return (event) => {
      this.observe(event);
      sink(event);
    };
  }

  /** A tool that was forged runs in the sandbox. */
  observe(event: AgentEvent): void {
    if (event.type === 'tool-result' && event.ok)
      this.#called.add(this.#categories.get(event.tool) ?? 'code_execution');
  }

  /** The engine, whose messages are recorded. A message that its user interrupts is no task. */
  recorded(engine: Engine): Engine {
    return {
      ...engine,
      handle: async (message, op) => {
        this.#called.clear();
        try {
          const handled = await engine.handle(message, op);
          // A turn that waits for an approval has not ended.
          if (handled.parked === undefined)
            await this.#record(message.session, handled.finishReason === 'complete' ? 'completed' : 'failed');
          return handled;
        } catch (error) {
          if (isTemperError(error) && !op.signal.aborted) await this.#record(message.session, outcomeOf(error.code));
          throw error;
        }
      },
    };
  }

  async #record(session: string, outcome: TaskOutcome): Promise<void> {
    const { records, clock, ids, agent } = this.#deps;
    const endedAt = clock.now().getTime();
    await recordTask(records, agent, { id: ids.next('msg'), session, outcome, endedAt, categories: [...this.#called] });
  }
}
