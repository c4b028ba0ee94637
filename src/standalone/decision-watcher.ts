import { SerialQueue } from '../lib/async/serial-queue.ts';
import { isTemperError, messageOf } from '../lib/errors.ts';
import type { Registry } from '../tempering/registry/registry.ts';
import type { ToolOwner } from '../tempering/registry/visibility.ts';
import { applyDecisions, type UserDecision } from './decision-files.ts';
import type { Team } from './team/team.ts';
import type { TeamEvents } from './team/team-events.ts';

/** Poll interval of the decisions folder; short enough for interactive use. */
const POLL_INTERVAL_MS = 200;

export interface DecisionWatcherDeps {
  /** Absolute path of the state folder. */
  state: string;
  registry: Registry;
  team: Pick<Team, 'decide' | 'members' | 'open'>;
  events: TeamEvents;
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
    const [first] = this.#deps.team.members();
    const source = { name: first?.name ?? '', namespace: first?.namespace ?? '' };
    this.#deps.events({ type: 'error', code, message: messageOf(error), attempt: 1 }, source);
  }

  async #apply(decision: UserDecision): Promise<void> {
    const { verb, reason, by } = decision;
    if (verb === 'Approve' || verb === 'Deny') return this.#deps.team.decide(decision);
    const { registry, team } = this.#deps;
    for (const owner of this.#owners()) {
      const matching = registry
        .all()
        .filter(({ active, digest }) =>
          verb === 'Demote' ? active : registry.deactivation(digest, owner) !== undefined,
        )
        .filter(({ object, digest, artifact }) =>
          [object, object.split('/').at(-1), digest, artifact.name].includes(decision.target),
        );
      for (const digest of new Set(matching.map((tool) => tool.digest))) {
        const { engine } = await team.open({ name: owner.agent, namespace: owner.namespace });
        if (verb === 'Demote') await engine.demote(digest, reason, by);
        else await engine.reactivate(digest, reason, by);
      }
    }
  }

  /** Agents may lose tools one by one; a demotion is for all of them. */
  #owners(): ToolOwner[] {
    return this.#deps.team.members().map(({ name: agent, namespace }) => ({ agent, namespace }));
  }
}
