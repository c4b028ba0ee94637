import { splitReference } from '../../forge/request.ts';
import type { Digest } from '../../lib/canonical.ts';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { ApprovalDecision } from '../../tools/approvals.ts';
import type { SchemaCompiler } from '../../tools/json-schema/compiler.ts';
import type { Panel } from '../judge/panel.ts';
import type { Examiner } from '../examination/types.ts';
import { examinationFigures } from '../examination/verdict.ts';
import { holdersOf, type ToolOwner, widestActive } from '../registry/visibility.ts';
import type { PromotionState, RecordedInput, RegisteredTool, Verifier } from '../types.ts';
import { examineTool } from './examination-step.ts';
import { leavingNote } from '../hygiene/least-useful.ts';
import { ExclusiveRuns } from './exclusive-runs.ts';
import { type PromotionEffectDeps, PromotionEffects } from './promotion-effects.ts';
import { formatFigures } from './promotion-messages.ts';
import {
  planAfterDecision,
  planAfterExamination,
  planAfterPanel,
  planAfterReruns,
  planAfterTests,
  planAgentPromotion,
  planSharedPromotion,
  type PromotionInput,
  type PromotionStep,
} from './promotion-plan.ts';
import type { PromotionRules } from './promotion-rules.ts';
import { admissibleInputs } from './recording-rules.ts';
import {
  createPromotionStateStore,
  type PromotionSubject,
  type StoredPromotionState,
} from './promotion-state-store.ts';
import { reverify } from '../verification/reverify.ts';

export interface PromotionDeps extends PromotionEffectDeps {
  verifier: Verifier;
  examiner: Examiner;
  panel: Panel;
  records: RecordStore;
  schemas: SchemaCompiler;
}

export interface Promotion {
  /**
   * Call after each successful, schema-valid use of a forged tool. Performs every promotion step that is currently possible.
   * A concurrent call for the same tool returns the state of the running one. Does not wait for an approval.
   */
  evaluate(digest: Digest, owner: ToolOwner, op: CallOptions): Promise<PromotionState>;
  /** Requests tier Shared, which always needs an approval. */
  requestShared(digest: Digest, owner: ToolOwner, op: CallOptions): Promise<PromotionState>;
  /** Stores why the policy does not allow the promotion now, for users. */
  notAllowed(digest: Digest, owner: ToolOwner, to: 'Agent' | 'Shared', reason: string): Promise<void>;
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
    return this.#attempt(subject, planAgentPromotion, (tool, { rules }) =>
      this.#promoteToAgent(tool, subject, rules, op),
    );
  }

  requestShared(digest: Digest, owner: ToolOwner, op: CallOptions): Promise<PromotionState> {
    const subject = this.#subject(digest, owner, 'Shared');
    return this.#attempt(subject, planSharedPromotion, (tool, { rules }) =>
      this.#verifyForSharing(tool, subject, rules, op),
    );
  }

  async notAllowed(digest: Digest, owner: ToolOwner, to: 'Agent' | 'Shared', reason: string): Promise<void> {
    const subject = this.#subject(digest, owner, to);
    if ((await this.#states.read(subject)) === undefined) await this.#effects.stay(subject, [reason]);
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

  /** Takes the step of the plan, and stores why an attempt ended without a verdict. */
  async #attempt(
    subject: PromotionSubject,
    plan: (facts: PromotionInput) => PromotionStep,
    take: (tool: RegisteredTool, facts: PromotionInput) => Promise<PromotionState>,
  ): Promise<PromotionState> {
    let attempted = false;
    const state = await this.#runs.run(subject, async () => {
      const facts = await this.#loadInput(subject);
      const planned = plan(facts);
      if (planned.step === 'stay') return planned.state;
      attempted = true;
      return take(planned.tool, facts);
    });
    if (attempted && state.state === 'Candidate') await this.#effects.stay(subject, state.missing);
    return state;
  }

  async #verifyForSharing(
    tool: RegisteredTool,
    subject: PromotionSubject,
    rules: PromotionRules,
    op: CallOptions,
  ): Promise<PromotionState> {
    const problem = await this.#effects.promotionProblem(subject);
    if (problem !== undefined) return { state: 'Candidate', missing: [problem] };
    // Recorded answers carried the tool to tier Agent; the observed ones among them carry it further.
    const replayed = (await this.#recordedInputs(subject, rules)).filter(({ answers }) => answers !== 'none');
    const verifying = `tests${replayed.length === 0 ? '' : ' and recorded inputs'} run again in a fresh runner`;
    this.#effects.setState(tool, subject, { state: 'Verifying' }, verifying);
    const figures = await reverify(tool, replayed, this.#deps, op);
    const tested = (replayed.length === 0 ? planAfterTests : planAfterReruns)(figures, rules);
    if (tested.step === 'stay') return tested.state;
    if (tested.step === 'reject') return this.#effects.reject(tool, subject, tested);
    return this.#effects.awaitApproval(tool, subject, []);
  }

  async #promoteToAgent(
    tool: RegisteredTool,
    subject: PromotionSubject,
    rules: PromotionRules,
    op: CallOptions,
  ): Promise<PromotionState> {
    const problem = await this.#effects.promotionProblem(subject);
    if (problem !== undefined) return { state: 'Candidate', missing: [problem] };
    const leaving = await this.#effects.toolThatLeaves(subject);
    const note = leaving === undefined ? '' : `; ${leavingNote(leaving)}`;
    const verifying = `tests and recorded inputs run again in a fresh runner${note}`;
    this.#effects.setState(tool, subject, { state: 'Verifying' }, verifying);
    const recorded = await this.#recordedInputs(subject, rules);
    const figures = await reverify(tool, recorded, this.#deps, op);
    const verified = planAfterReruns(figures, rules);
    if (verified.step === 'stay') return verified.state;
    if (verified.step === 'reject') return this.#effects.reject(tool, subject, verified);
    const { report, verdict } = await examineTool(this.#deps, { tool, subject, recorded, rules }, op);
    const examined = planAfterExamination(verdict, rules);
    if (examined.step === 'reject') return this.#effects.reject(tool, subject, examined);
    this.#effects.setState(tool, subject, { state: 'PanelReview' }, formatFigures(figures));
    const panel = await this.#deps.panel.review(tool, { ...figures, ...examinationFigures(report) }, op);
    const reviewed = planAfterPanel(panel, figures, rules, examined.questions);
    if (reviewed.step === 'reject') return this.#effects.reject(tool, subject, reviewed, panel.verdicts);
    if (reviewed.step === 'ask') return this.#effects.awaitApproval(tool, subject, panel.verdicts, examined.questions);
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

  async #recordedInputs(subject: PromotionSubject, rules: PromotionRules): Promise<RecordedInput[]> {
    const { digest, namespace, to } = subject;
    return admissibleInputs(await this.#deps.registry.recordedInputs(digest, namespace), to, rules);
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
