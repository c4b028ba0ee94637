import type { Clock } from '../lib/clock.ts';
import type { Digest } from '../lib/canonical.ts';
import { isTemperError } from '../lib/errors.ts';
import type { Op } from '../lib/operation.ts';
import type { Demotion } from '../tempering/demotion.ts';
import type { Promotion } from '../tempering/promotion.ts';
import type { Registry } from '../tempering/registry.ts';
import type { PromotionState, ToolUse } from '../tempering/types.ts';
import type { CompletedCall } from '../tools/invoker.ts';
import type { Background } from './background.ts';
import type { EngineAgent } from './ports.ts';
import { useOf } from './tool-use.ts';
import { UseBatches } from './use-batches.ts';
import type { Workshop } from './workshop.ts';

/** A verification with its panel ends within this. */
const PROMOTION_MILLISECONDS = 10 * 60_000;
/** A person may take as long as they like; the operation needs some number. */
const PERSON_MILLISECONDS = 365 * 24 * 3_600_000;

export interface RiseDeps {
  agent: EngineAgent;
  decider: Workshop['decider'];
  registry: Registry;
  promotion: Promotion;
  demotion: Demotion;
  background: Background;
  clock: Clock;
}

/** What each use of a forged tool sets in motion: its record, its rise, its fall. */
export class Rise {
  readonly #deps: RiseDeps;
  readonly #owner: { agent: string; namespace: string };
  readonly #batches: UseBatches;

  constructor(deps: RiseDeps) {
    this.#deps = deps;
    this.#owner = { agent: deps.agent.name, namespace: deps.agent.namespace };
    const { background, clock } = deps;
    this.#batches = new UseBatches({
      background,
      pause: (milliseconds) => clock.sleep(milliseconds, background.signal).catch(() => undefined),
      process: (uses) => this.#process(uses),
    });
  }

  /** Nobody waits for the record of a use, nor for what follows from it; `settled` of the engine does. */
  observe(call: CompletedCall): void {
    const use = useOf(call, 'observed', this.#deps.clock);
    if (use !== undefined) this.#batches.add(use);
  }

  /** Takes up again what waited for a person when the last process ended. */
  async resume(): Promise<void> {
    for (const subject of await this.#deps.promotion.waiting()) {
      this.#deps.background.wait(async () => {
        await this.#deps.promotion.settle(subject, this.#op(PERSON_MILLISECONDS, subject.digest));
      });
    }
  }

  async #process(uses: readonly ToolUse[]): Promise<void> {
    const { registry } = this.#deps;
    await Promise.all(uses.map((use) => registry.recordUse(use)));
    const [first] = uses;
    const tool = first === undefined ? undefined : registry.get(first.digest);
    if (first === undefined || tool === undefined) return;
    if (uses.some(({ succeeded }) => !succeeded)) await this.#doubt(tool.digest);
    if (uses.some(({ succeeded }) => succeeded)) await this.#consider(tool.digest, tool.artifact.name, first.session);
  }

  async #consider(digest: Digest, tool: string, session: string): Promise<void> {
    const { promotion, registry } = this.#deps;
    const tier = registry.get(digest)?.tier === 'Agent' && this.#mayBeShared() ? 'Shared' : 'Agent';
    const decision = this.#deps.decider({ ...this.#owner, session }).decide({ kind: 'Promote', tool, tier });
    if (decision.effect === 'Deny') return;
    const op = this.#op(PROMOTION_MILLISECONDS, digest);
    const state =
      tier === 'Shared'
        ? await promotion.requestShared(digest, this.#owner, op)
        : await promotion.evaluate(digest, this.#owner, op);
    if (state.state === 'AwaitingApproval') await this.#awaitPerson(digest, state);
  }

  async #awaitPerson(
    digest: Digest,
    { request }: Extract<PromotionState, { state: 'AwaitingApproval' }>,
  ): Promise<void> {
    const { promotion, background } = this.#deps;
    const subject = (await promotion.waiting()).find((waiting) => waiting.digest === digest);
    if (subject === undefined) return;
    background.wait(async () => {
      try {
        await promotion.settle(subject, this.#op(PERSON_MILLISECONDS, request));
      } catch (error) {
        // A second use asked about the same request: whoever came first has settled it.
        if (!isTemperError(error, 'TEMPER_PROMOTION_NOT_READY')) throw error;
      }
    });
  }

  async #doubt(digest: Digest): Promise<void> {
    await this.#deps.demotion.consider(digest, this.#owner);
  }

  #mayBeShared(): boolean {
    return this.#deps.agent.policy.spec.promotion?.toShared !== undefined;
  }

  #op(milliseconds: number, key: string): Op {
    const { background, clock } = this.#deps;
    return { signal: background.signal, deadline: clock.monotonic() + milliseconds, key };
  }
}
