import { sha256 } from '../../../lib/canonical.ts';
import type { CallOptions } from '../../../lib/call-options.ts';
import { TemperError } from '../../../lib/errors.ts';
import type { Json, JsonObject } from '../../../lib/json.ts';
import { printable } from '../../../lib/printable.ts';
import type { CallerContext, Invoker, ToolFailure } from '../../../tools/contract.ts';
import type { AgentEvent, EventSink } from '../../../tools/events.ts';
import { PUBLISH_TOOL } from '../events/event-tools.ts';
import { liveEvent } from './live-event.ts';

interface PublisherDeps {
  /** The subject of the events. */
  readonly subject: string;
  readonly invoker: Pick<Invoker, 'invoke'>;
  /** The caller of the run. */
  readonly caller: CallerContext;
  readonly op: CallOptions;
  /** Of the message. */
  readonly events: EventSink;
}

/** Events that wait to be published; more are left out. */
const MAX_WAITING = 100;
const KEY_CHARACTERS = 32;
/** What another event may not meet any more. */
const PASSING: ReadonlySet<string> = new Set(['TEMPER_RATE_LIMITED', 'TEMPER_QUOTA_EXCEEDED', 'TEMPER_EVENT_REFUSED']);

/**
 * Publishes what a run does as events of the namespace, one after another. Each is a call of `event_publish` by the caller of the run, so
 * policy, hooks, quotas and audit are those of any other call. A repeated attempt at a turn publishes the same events again.
 */
export class PublishedEvents {
  readonly #deps: PublisherDeps;
  readonly #first = Promise.withResolvers<ToolFailure | undefined>();
  #tail: Promise<void> = Promise.resolve();
  #waiting = 0;
  #turn = 0;
  #hasStarted = false;
  #hasWarned = false;
  #isClosed = false;

  constructor(deps: PublisherDeps) {
    this.#deps = deps;
  }

  readonly sink = (event: AgentEvent): void => {
    if (event.type === 'turn-start') this.#turn = event.turn;
    const data = liveEvent(event);
    if (data === undefined || this.#isClosed) return;
    if (this.#waiting >= MAX_WAITING) {
      this.#warn('TEMPER_RATE_LIMITED', 'events wait longer than new ones come');
      return;
    }
    const place = JSON.stringify([data['type'], this.#turn, data['id'] ?? data['attempt'] ?? null]);
    this.#waiting += 1;
    this.#tail = this.#tail.then(() => this.#publish(data, place));
  };

  /** Resolves when the first event is published. Throws the refusal of the call, so that a run without the right to publish does not start. */
  async started(): Promise<void> {
    const failure = await this.#first.promise;
    if (failure === undefined) return;
    throw new TemperError(
      failure.code,
      `agent_run: events of "${printable(this.#deps.subject, 128)}": ${failure.message}`,
    );
  }

  /** Resolves when everything is published. */
  async end(): Promise<void> {
    await this.#tail;
    this.#isClosed = true;
  }

  async #publish(data: JsonObject, place: string): Promise<void> {
    this.#waiting -= 1;
    if (this.#isClosed) return;
    const failure = await this.#call({ subject: this.#deps.subject, data }, place);
    const isPassing = failure !== undefined && PASSING.has(failure.code);
    const isFirst = !this.#hasStarted;
    this.#hasStarted = true;
    if (isFirst) this.#first.resolve(isPassing ? undefined : failure);
    if (failure === undefined) return;
    if (!isFirst || isPassing) this.#warn(failure.code, failure.message);
    this.#isClosed = !isPassing;
  }

  async #call(input: Json, place: string): Promise<ToolFailure | undefined> {
    const { invoker, caller, op } = this.#deps;
    const key = sha256(`${op.key}\n${place}`).slice('sha256:'.length, 'sha256:'.length + KEY_CHARACTERS);
    try {
      const result = await invoker.invoke(PUBLISH_TOOL.name, input, caller, { ...op, key });
      return result.ok ? undefined : result.error;
    } catch (error) {
      // Only an audit record that cannot be written; the call of the run itself meets it too.
      return { code: 'TEMPER_INTERNAL', message: printable(String(error), 200) };
    }
  }

  /** Once for a run. */
  #warn(code: string, reason: string): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    const message = `not every event of a nested agent was published: ${printable(reason, 300)}`;
    this.#deps.events({ type: 'warning', code, message });
  }
}
