import type { Engine } from '../engine/engine.ts';
import { isTemperError, messageOf } from '../lib/errors.ts';
import type { RecordStore } from '../lib/records.ts';
import type { Registry } from '../tempering/registry.ts';
import type { EventSink } from '../tools/events.ts';
import type { FileApprovals } from './approvals.ts';
import { applyDecisions, type PersonDecision } from './decisions.ts';

/** How often the folder is looked at, in milliseconds: soon enough for a person who watches. */
const INTERVAL = 200;

export interface MailboxDeps {
  records: RecordStore;
  registry: Registry;
  approvals: FileApprovals;
  engine: Engine;
  events: EventSink;
}

/** Applies what people decide in other terminals while this process holds the state. */
export class DecisionMailbox {
  readonly #deps: MailboxDeps;
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> = Promise.resolve();

  constructor(deps: MailboxDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#round = this.#look();
    this.#timer = setInterval(() => {
      this.#round = this.#round.then(() => this.#look());
    }, INTERVAL);
  }

  /** Applies what is there once more, then stops looking. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#round;
    await this.#look();
  }

  async #look(): Promise<void> {
    try {
      await applyDecisions(
        this.#deps.records,
        (decision) => this.#apply(decision),
        (problem) => this.#report(problem),
      );
    } catch (error) {
      this.#report(error);
    }
  }

  #report(error: unknown): void {
    const code = isTemperError(error) ? error.code : 'TEMPER_INTERNAL';
    this.#deps.events({ type: 'error', code, message: messageOf(error), attempt: 1 });
  }

  async #apply(decision: PersonDecision): Promise<void> {
    if (decision.verb !== 'Demote') return this.#deps.approvals.decide(decision);
    const { registry, engine } = this.#deps;
    const named = registry
      .all()
      .filter(({ active }) => active)
      .filter(({ object, digest, artifact }) =>
        [object, object.split('/').at(-1), digest, artifact.name].includes(decision.target),
      );
    for (const tool of named) await engine.demote(tool.digest, decision.reason, decision.by);
  }
}
