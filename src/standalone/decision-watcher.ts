import type { Engine } from '../engine/engine.ts';
import { SerialQueue } from '../lib/async/serial-queue.ts';
import { isTemperError, messageOf } from '../lib/errors.ts';
import type { Registry } from '../tempering/registry/registry.ts';
import type { EventSink } from '../tools/events.ts';
import type { FileApprovals } from './approvals.ts';
import { applyDecisions, type UserDecision } from './decision-files.ts';

/** Poll interval of the decisions folder; short enough for interactive use. */
const POLL_INTERVAL_MS = 200;

export interface DecisionWatcherDeps {
  /** Absolute path of the state folder. */
  state: string;
  registry: Registry;
  approvals: FileApprovals;
  engine: Engine;
  /** The agent of this process. */
  agent: { name: string; namespace: string };
  events: EventSink;
}

/** Polls for decisions that users submit in other terminals while this process holds the state, and applies them. */
export class DecisionWatcher {
  readonly #deps: DecisionWatcherDeps;
  #timer: NodeJS.Timeout | undefined;
  readonly #polls = new SerialQueue();
  /** An error that lasts is reported once, and not at every poll. */
  #lastReport: string | undefined;

  constructor(deps: DecisionWatcherDeps) {
    this.#deps = deps;
  }

  /** Resolves when the decisions that were submitted before are applied. */
  async start(): Promise<void> {
    await this.#poll();
    this.#timer = setInterval(() => void this.#polls.run(() => this.#poll()), POLL_INTERVAL_MS);
  }

  /** Stops polling after it has applied the pending decisions once more. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#polls.run(() => this.#poll());
  }

  async #poll(): Promise<void> {
    try {
      await applyDecisions(
        this.#deps.state,
        (decision) => this.#apply(decision),
        (problem) => this.#report(problem),
      );
      this.#lastReport = undefined;
    } catch (error) {
      this.#report(error);
    }
  }

  #report(error: unknown): void {
    const code = isTemperError(error) ? error.code : 'TEMPER_INTERNAL';
    if (this.#lastReport === messageOf(error)) return;
    this.#lastReport = messageOf(error);
    this.#deps.events({ type: 'error', code, message: messageOf(error), attempt: 1 });
  }

  async #apply(decision: UserDecision): Promise<void> {
    const { verb, reason, by } = decision;
    if (verb === 'Approve' || verb === 'Deny') return this.#deps.approvals.decide({ ...decision, verb });
    const { registry, engine } = this.#deps;
    const owner = { agent: this.#deps.agent.name, namespace: this.#deps.agent.namespace };
    const matching = registry
      .all()
      .filter(({ active, digest }) => (verb === 'Demote' ? active : registry.deactivation(digest, owner) !== undefined))
      .filter(({ object, digest, artifact }) =>
        [object, object.split('/').at(-1), digest, artifact.name].includes(decision.target),
      );
    for (const digest of new Set(matching.map((tool) => tool.digest))) {
      if (verb === 'Demote') await engine.demote(digest, reason, by);
      else await engine.reactivate(digest, reason, by);
    }
  }
}
