import type { Clock } from '../../lib/clock.ts';
import type { Digest } from '../../lib/canonical.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { Demotion } from '../promotion/demotion.ts';
import type { LifecycleContext } from './ports.ts';
import type { Promotion } from '../promotion/promotion.ts';
import type { Registry } from '../registry/registry.ts';
import type { PromotionState, ToolUse } from '../types.ts';
import type { CompletedCall } from '../../tools/invoker.ts';
import type { BackgroundTasks } from './background-tasks.ts';
import { toToolUse } from '../use/tool-use.ts';
import { ToolUseBatcher } from '../use/use-batches.ts';

/** Limit for one verification including the panel. */
const PROMOTION_TIMEOUT_MS = 10 * 60_000;
/** Practically unlimited: an approver may take any time, but the operation needs a deadline. */
const APPROVAL_TIMEOUT_MS = 365 * 24 * 3_600_000;

export interface ToolPromotionDeps {
  agent: LifecycleContext['agent'];
  decider: LifecycleContext['decider'];
  registry: Registry;
  promotion: Promotion;
  demotion: Demotion;
  background: BackgroundTasks;
  clock: Clock;
}

/** Processes the uses of forged tools: use record, promotion and demotion. */
export class ToolPromotion {
  readonly #deps: ToolPromotionDeps;
  readonly #owner: { agent: string; namespace: string };
  readonly #batches: ToolUseBatcher;

  constructor(deps: ToolPromotionDeps) {
    this.#deps = deps;
    this.#owner = { agent: deps.agent.name, namespace: deps.agent.namespace };
    const { background, clock } = deps;
    this.#batches = new ToolUseBatcher({
      background,
      sleep: (milliseconds) => clock.sleep(milliseconds, background.signal).catch(() => undefined),
      process: (uses) => this.#process(uses),
    });
  }

  /** Processes a call asynchronously. The caller does not wait for it; only `settled` of the engine does. */
  observe(call: CompletedCall): void {
    const use = toToolUse(call, 'observed', this.#deps.clock);
    if (use !== undefined) this.#batches.add(use);
  }

  /** Resumes promotions that awaited an approval when the previous process ended. */
  async resume(): Promise<void> {
    for (const subject of await this.#deps.promotion.awaitingApproval()) {
      this.#deps.background.runUntilStopped(async () => {
        await this.#deps.promotion.awaitDecision(subject, this.#op(APPROVAL_TIMEOUT_MS, subject.digest));
      });
    }
  }

  async #process(uses: readonly ToolUse[]): Promise<void> {
    const { registry } = this.#deps;
    await Promise.all(uses.map((use) => registry.recordUse(use)));
    const [first] = uses;
    const tool = first === undefined ? undefined : registry.get(first.digest);
    if (first === undefined || tool === undefined) return;
    if (uses.some(({ succeeded }) => !succeeded)) await this.#checkDemotion(tool.digest);
    if (uses.some(({ succeeded }) => succeeded)) await this.#tryPromote(tool.digest, tool.artifact.name, first.session);
  }

  async #tryPromote(digest: Digest, tool: string, session: string): Promise<void> {
    const { promotion, registry } = this.#deps;
    const tier = registry.get(digest)?.tier === 'Agent' && this.#mayBeShared() ? 'Shared' : 'Agent';
    const decision = this.#deps.decider({ ...this.#owner, session }).decide({ kind: 'Promote', tool, tier });
    if (decision.effect === 'Deny') {
      await promotion.notAllowed(
        digest,
        this.#owner,
        tier,
        `the policy denies it: ${decision.reason} (${decision.rule})`,
      );
      return;
    }
    const op = this.#op(PROMOTION_TIMEOUT_MS, digest);
    const state =
      tier === 'Shared'
        ? await promotion.requestShared(digest, this.#owner, op)
        : await promotion.evaluate(digest, this.#owner, op);
    if (state.state === 'AwaitingApproval') await this.#awaitApproval(digest, state);
  }

  async #awaitApproval(
    digest: Digest,
    { request }: Extract<PromotionState, { state: 'AwaitingApproval' }>,
  ): Promise<void> {
    const { promotion, background } = this.#deps;
    const subject = (await promotion.awaitingApproval()).find((waiting) => waiting.digest === digest);
    if (subject === undefined) return;
    background.runUntilStopped(async () => {
      try {
        await promotion.awaitDecision(subject, this.#op(APPROVAL_TIMEOUT_MS, request));
      } catch (error) {
        // A concurrent use awaited the same request and has already applied the decision.
        if (!isTemperError(error, 'TEMPER_PROMOTION_NOT_READY')) throw error;
      }
    });
  }

  async #checkDemotion(digest: Digest): Promise<void> {
    await this.#deps.demotion.demoteIfFailing(digest, this.#owner);
  }

  #mayBeShared(): boolean {
    return this.#deps.agent.policy.spec.promotion?.toShared !== undefined;
  }

  #op(milliseconds: number, key: string): CallOptions {
    const { background, clock } = this.#deps;
    return { signal: background.signal, deadline: clock.monotonic() + milliseconds, key };
  }
}
