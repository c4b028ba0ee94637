import type { Digest } from '../../lib/canonical.ts';
import type { Clock } from '../../lib/clock.ts';
import { isTemperError, messageOf } from '../../lib/errors.ts';
import type { EventSink } from '../../tools/events.ts';
import type { Demotion } from '../promotion/demotion.ts';
import type { Registry } from '../registry/registry.ts';
import type { ToolOwner } from '../registry/visibility.ts';
import type { BackgroundTasks } from './background-tasks.ts';
import { type PlannedRun, plannedRuns } from './reverification-plan.ts';

export interface ReverificationDeps {
  readonly registry: Pick<Registry, 'all' | 'verifiedAt' | 'recordVerification'>;
  readonly demotion: Pick<Demotion, 'demoteIfTestsFail'>;
  readonly background: BackgroundTasks;
  readonly clock: Clock;
  readonly events: EventSink;
  readonly owner: ToolOwner;
  /** `decay.reverifyEvery` of the policy. */
  readonly everyMs: number;
}

const RUN_TIMEOUT_MS = 5 * 60_000;
/** After a run that could not start, which says nothing about the tool. */
const RETRY_MS = 10 * 60_000;
/** Tools that are promoted meanwhile have their own times. */
const MAX_WAIT_MS = 3_600_000;
/** Between two passes, however short the interval of the policy is. */
const MIN_WAIT_MS = 60_000;

/** Runs the tests of tools in service again when their last verification is too old: at the start, and then by the clock. */
export class Reverification {
  readonly #deps: ReverificationDeps;
  readonly #retryAt = new Map<Digest, number>();

  constructor(deps: ReverificationDeps) {
    this.#deps = deps;
  }

  /** Starts in the background: `settled` waits for the tools that are due now, and not for later ones. */
  start(): void {
    const { background, clock } = this.#deps;
    background.run(async () => {
      for (const run of this.#planned().filter(({ dueAt }) => dueAt <= clock.now().getTime())) await this.#verify(run);
      background.runUntilStopped(() => this.#startLater());
    });
  }

  async #startLater(): Promise<void> {
    const { background, clock } = this.#deps;
    const [next] = this.#planned();
    const leftMs = next === undefined ? MAX_WAIT_MS : next.dueAt - clock.now().getTime();
    await clock.sleep(Math.min(MAX_WAIT_MS, Math.max(MIN_WAIT_MS, leftMs)), background.signal);
    this.start();
  }

  #planned(): PlannedRun[] {
    const { registry, owner, everyMs } = this.#deps;
    return plannedRuns({
      tools: registry.all(),
      owner,
      everyMs,
      verifiedAt: (digest) => registry.verifiedAt(digest, owner),
      retryAt: (digest) => this.#retryAt.get(digest) ?? 0,
    });
  }

  /** A failed test demotes the tool. A run that could not start is reported and repeated, and takes nothing out of service. */
  async #verify({ digest, tool }: PlannedRun): Promise<void> {
    const { registry, demotion, background, clock, events, owner } = this.#deps;
    const { signal } = background;
    if (signal.aborted) return;
    try {
      const op = { signal, deadline: clock.monotonic() + RUN_TIMEOUT_MS, key: digest };
      if (!(await demotion.demoteIfTestsFail(digest, owner, op))) await registry.recordVerification(digest, owner);
    } catch (error) {
      if (signal.aborted) return;
      this.#retryAt.set(digest, clock.now().getTime() + RETRY_MS);
      const code = isTemperError(error) ? error.code : 'TEMPER_INTERNAL';
      const message = `the tests of "${tool}" could not run again, and will be tried again in 10 minutes: ${messageOf(error, 300)}`;
      events({ type: 'warning', code, message });
    }
  }
}
