import { INVOKE_TOOL } from '../../agent/code/code-prompt.ts';
import type { ToolCategoryName } from '../../api/v1alpha1/actions.ts';
import type { Engine } from '../../engine/engine.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Digest } from '../../lib/canonical.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { IdGenerator } from '../../lib/ids.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import type { TaskOutcome } from '../../policy/trust/evidence.ts';
import { outcomeOf } from '../../policy/trust/task-outcome.ts';
import { MAX_TASK_TOOLS } from '../../tempering/hygiene/tool-task.ts';
import type { AgentEvent, EventSink } from '../../tools/events.ts';
import { type LocalAgent, recordTask } from './local-tasks.ts';

export interface LocalTaskRecorderDeps {
  readonly records: RecordStore;
  readonly clock: Clock;
  readonly ids: IdGenerator;
  readonly agent: LocalAgent;
}

/** What the agent called for the message of a session that has not ended. */
interface Calls {
  readonly categories: Set<ToolCategoryName>;
  readonly tools: Set<Digest>;
}

/** Records how each message of a user ends, the categories of the tools that it called, and the forged tools among them. */
export class LocalTaskRecorder {
  readonly #deps: LocalTaskRecorderDeps;
  /** By session, of messages that have not ended: a turn that waits for an approval goes on in another message. */
  readonly #calls = new Map<string, Calls>();

  constructor(deps: LocalTaskRecorderDeps) {
    this.#deps = deps;
  }

  /** The sink, of which this sees every event first. */
  observing(sink: EventSink): EventSink {
    return (event, session) => {
      if (session !== undefined) this.observe(event, session);
      sink(event, session);
    };
  }

  /** Counts the code that the model of an agent in code mode runs, which is the call of no tool. */
  observe(event: AgentEvent, session: string): void {
    if (event.type === 'tool-result' && event.ok && event.tool === INVOKE_TOOL.name)
      this.called(INVOKE_TOOL.category, session);
  }

  /** A call of a tool of this category succeeded. */
  called(category: ToolCategoryName, session: string): void {
    this.#calls.get(session)?.categories.add(category);
  }

  /** A call of a forged tool by the agent itself reached the tool. */
  used(digest: Digest, session: string): void {
    this.#calls.get(session)?.tools.add(digest);
  }

  /** The engine, whose messages are recorded; `onRecorded` runs after each. A message that its user interrupts is no task. */
  recorded(engine: Engine, onRecorded: () => Promise<void> = async () => undefined): Engine {
    return {
      ...engine,
      handle: async (message, op) => {
        if (message.source !== undefined && message.source !== 'User') return engine.handle(message, op);
        this.#open(message.session);
        try {
          const handled = await engine.handle(message, op);
          // A turn that waits for an approval has not ended.
          if (handled.parked === undefined) {
            await this.#record(message.session, handled.finishReason === 'complete' ? 'completed' : 'failed');
            await onRecorded();
          }
          return handled;
        } catch (error) {
          if (isTemperError(error) && !op.signal.aborted) {
            await this.#record(message.session, outcomeOf(error.code));
            await onRecorded();
          }
          this.#calls.delete(message.session);
          throw error;
        }
      },
    };
  }

  async #record(session: string, outcome: TaskOutcome): Promise<void> {
    const { records, clock, ids, agent } = this.#deps;
    const endedAt = clock.now().getTime();
    const { categories, tools } = this.#open(session);
    this.#calls.delete(session);
    const called = { categories: [...categories], tools: [...tools].slice(0, MAX_TASK_TOOLS) };
    await recordTask(records, agent, { id: ids.next('msg'), session, outcome, endedAt, ...called });
  }

  #open(session: string): Calls {
    const known: Calls = this.#calls.get(session) ?? { categories: new Set(), tools: new Set() };
    this.#calls.set(session, known);
    return known;
  }
}
