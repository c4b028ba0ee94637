import { splitReference } from '../../forge/request.ts';
import type { Digest } from '../../lib/canonical.ts';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { ApprovalDecision } from '../../tools/approvals.ts';
import type { SchemaCompiler } from '../../tools/json-schema/compiler.ts';
import type { Panel } from '../judge/panel.ts';
import { type ToolOwner, widestActive } from '../registry/visibility.ts';
import type { PromotionState, RegisteredTool, Verifier } from '../types.ts';
import { ExclusiveRuns } from './exclusive-runs.ts';
import { type PromotionEffectDeps, PromotionEffects } from './promotion-effects.ts';
import { formatFigures } from './promotion-messages.ts';
import {
  planAfterDecision,
  planAfterPanel,
  planAfterReruns,
  planAfterTests,
  planAgentPromotion,
  planSharedPromotion,
  type PromotionInput,
} from './promotion-plan.ts';
import type { PromotionRules } from './promotion-rules.ts';
import {
  createPromotionStateStore,
  type PromotionSubject,
  type StoredPromotionState,
} from './promotion-state-store.ts';
import { reverify } from '../verification/reverify.ts';

export interface PromotionDeps extends PromotionEffectDeps {
  verifier: Verifier;
  panel: Panel;
  records: RecordStore;
  schemas: SchemaCompiler;
  /** The rules of the current policy. */
  rules(owner: ToolOwner): PromotionRules;
}

export interface Promotion {
  /**
   * Call after each successful, schema-valid use of a forged tool. Performs every promotion step that is currently possible.
   * A concurrent call for the same tool returns the state of the running one. Does not wait for an approval.
   */
  evaluate(digest: Digest, owner: ToolOwner, op: CallOptions): Promise<PromotionState>;
  /** Requests tier Shared, which always needs an approval. */
  requestShared(digest: Digest, owner: ToolOwner, op: CallOptions): Promise<PromotionState>;
  /** The promotions that await an approval, including those of an earlier process. The caller continues each in the background. */
  awaitingApproval(): Promise<PromotionSubject[]>;
  /**
   * Waits for the decision, verifies the tool again and applies the decision. Throws TEMPER_PROMOTION_NOT_READY when no approval
   * was requested, and the errors of `Approvals.decided`.
   */
  awaitDecision(subject: PromotionSubject, op: CallOptions): Promise<PromotionState>;
}

export function createPromotion(deps: PromotionDeps): Promotion {
  return new PromotionProcess(deps);
}

type AwaitingApproval = Extract<StoredPromotionState, { state: 'AwaitingApproval' }>;

/** Takes the steps of a promotion in order: each is a pure plan, then its effect. */
class PromotionProcess implements Promotion {
  readonly #deps: PromotionDeps;
  readonly #states;
  readonly #effects: PromotionEffects;
  readonly #runs = new ExclusiveRuns();

  constructor(deps: PromotionDeps) {
    this.#deps = deps;
    this.#states = createPromotionStateStore(deps.records);
    this.#effects = new PromotionEffects(deps, this.#states, this.#runs);
  }

  evaluate(digest: Digest, owner: ToolOwner, op: CallOptions): Promise<PromotionState> {
    const subject = this.#subject(digest, owner, 'Agent');
    return this.#runs.run(subject, async () => {
      const facts = await this.#loadInput(subject);
      const plan = planAgentPromotion(facts);
      return plan.step === 'stay' ? plan.state : this.#promoteToAgent(plan.tool, subject, facts.rules, op);
    });
  }

  requestShared(digest: Digest, owner: ToolOwner, op: CallOptions): Promise<PromotionState> {
    const subject = this.#subject(digest, owner, 'Shared');
    return this.#runs.run(subject, async () => {
      const facts = await this.#loadInput(subject);
      const plan = planSharedPromotion(facts);
      if (plan.step === 'stay') return plan.state;
      const problem = this.#effects.promotionProblem(subject);
      if (problem !== undefined) return { state: 'Candidate', missing: [problem] };
      this.#effects.setState(plan.tool, subject, { state: 'Verifying' }, 'tests run again in a fresh runner');
      const tested = planAfterTests(await reverify(plan.tool, [], this.#deps, op), facts.rules);
      if (tested.step === 'reject') return this.#effects.reject(plan.tool, subject, tested);
      return this.#effects.awaitApproval(plan.tool, subject, []);
    });
  }

  awaitingApproval(): Promise<PromotionSubject[]> {
    return this.#states.awaitingApproval();
  }

  async awaitDecision(subject: PromotionSubject, op: CallOptions): Promise<PromotionState> {
    const note = await this.#states.read(subject);
    if (note?.state !== 'AwaitingApproval') {
      throw new TemperError(
        'TEMPER_PROMOTION_NOT_READY',
        `no approval was requested for "${subject.tool}"; request it first`,
      );
    }
    const tool = widestActive(this.#deps.registry, subject);
    const request = await this.#effects.requestApproval(subject, note.nonce, tool);
    const decision = await this.#deps.approvals.waitForDecision(request, op);
    const work = async (): Promise<PromotionState> => {
      const still = await this.#states.read(subject);
      if (still?.state === 'AwaitingApproval' && still.nonce === note.nonce) {
        await this.#effects.recordDecision(subject, decision, request);
        return this.#applyDecision(subject, note, decision, op);
      }
      // A concurrent caller awaited the same decision and has applied it.
      const current = widestActive(this.#deps.registry, subject);
      if (current?.tier === subject.to) return { state: 'Promoted', to: subject.to };
      return { state: 'Candidate', missing: ['the decision was already applied'] };
    };
    return this.#runs.run(subject, work, true);
  }

  async #promoteToAgent(
    tool: RegisteredTool,
    subject: PromotionSubject,
    rules: PromotionRules,
    op: CallOptions,
  ): Promise<PromotionState> {
    const problem = this.#effects.promotionProblem(subject);
    if (problem !== undefined) return { state: 'Candidate', missing: [problem] };
    const verifying = 'tests and recorded inputs run again in a fresh runner';
    this.#effects.setState(tool, subject, { state: 'Verifying' }, verifying);
    const recorded = await this.#deps.registry.recordedInputs(subject.digest, subject.namespace);
    const figures = await reverify(tool, recorded, this.#deps, op);
    const verified = planAfterReruns(figures, rules);
    if (verified.step === 'stay') return verified.state;
    if (verified.step === 'reject') return this.#effects.reject(tool, subject, verified);
    this.#effects.setState(tool, subject, { state: 'PanelReview' }, formatFigures(figures));
    const panel = await this.#deps.panel.review(tool, { ...figures }, op);
    const reviewed = planAfterPanel(panel, figures, rules);
    if (reviewed.step === 'reject') return this.#effects.reject(tool, subject, reviewed);
    if (reviewed.step === 'ask') return this.#effects.awaitApproval(tool, subject, panel.verdicts);
    return this.#effects.promote(tool, subject, panel.verdicts, 'system', reviewed.note);
  }

  /** The approval is bound to digest, tier, namespace and nonce, so only the state that can change meanwhile is checked again. */
  async #applyDecision(
    subject: PromotionSubject,
    { verdicts }: AwaitingApproval,
    decision: ApprovalDecision,
    op: CallOptions,
  ): Promise<PromotionState> {
    const tool = widestActive(this.#deps.registry, subject);
    if (tool === undefined) {
      await this.#states.delete(subject);
      return { state: 'Candidate', missing: ['it was demoted before the decision'] };
    }
    const rules = this.#deps.rules(subject);
    const decided = planAfterDecision(tool, decision, rules);
    if (decided.step === 'reject') return this.#effects.reject(tool, subject, decided);
    this.#effects.setState(tool, subject, { state: 'Verifying' }, 'approved; tests run again in a fresh runner');
    const tested = planAfterTests(await reverify(tool, [], this.#deps, op), rules);
    if (tested.step === 'reject') return this.#effects.reject(tool, subject, tested);
    return this.#effects.promote(tool, subject, verdicts, decision.by, `approved by ${printable(decision.by, 120)}`);
  }

  async #loadInput(subject: PromotionSubject): Promise<PromotionInput> {
    const { registry, clock } = this.#deps;
    const tool = widestActive(this.#deps.registry, subject);
    const pins = (tool?.artifact.implementation.steps ?? []).map((step) => splitReference(step.tool).digest);
    return {
      tool,
      uses: await registry.statistics(subject.digest, subject.namespace),
      holders: holdersOf(registry.all(), subject),
      storedState: await this.#states.read(subject),
      rules: this.#deps.rules(subject),
      dependencies: pins
        .filter((pin) => pin !== undefined)
        .map((pin) => widestActive(registry, { ...subject, digest: pin as Digest })),
      now: clock.now(),
    };
  }

  #subject(digest: Digest, { agent, namespace }: ToolOwner, to: 'Agent' | 'Shared'): PromotionSubject {
    const tool = this.#deps.registry.get(digest)?.artifact.name ?? 'unknown';
    return { digest, tool, agent, namespace, to };
  }
}

function holdersOf(tools: readonly RegisteredTool[], { digest, namespace }: PromotionSubject): number {
  const holding = tools.filter((tool) => tool.active && tool.tier === 'Agent' && tool.digest === digest);
  return new Set(holding.filter(({ owner }) => owner.namespace === namespace).map(({ owner }) => owner.agent)).size;
}
