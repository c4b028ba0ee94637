import type { Audit } from '../../audit/port.ts';
import type { JudgeVerdict } from '../../forge/types.ts';
import { splitReference } from '../../forge/request.ts';
import type { Digest } from '../../lib/canonical.ts';
import type { Clock } from '../../lib/clock.ts';
import { isTemperError, messageOf, TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { Approvals } from '../../tools/approvals.ts';
import type { EventSink } from '../../tools/events.ts';
import type { SchemaCompiler } from '../../tools/json-schema/compiler.ts';
import type { Panel } from '../judge/panel.ts';
import {
  approvalSubject,
  createPromotionStateStore,
  type StoredPromotionState,
  type PromotionSubject,
} from './promotion-state-store.ts';
import { planAgentPromotion, planSharedPromotion, type PromotionInput } from './promotion-plan.ts';
import { confidenceGap, failedVerification, type PromotionRules, verificationGaps } from './promotion-rules.ts';
import type { PromotionOrder } from '../registry/registered-tool.ts';
import type { Registry } from '../registry/registry.ts';
import { reverify } from './reverify.ts';
import { type ToolLimits, type ToolOwner, widestActive } from '../registry/visibility.ts';
import { approvalSummary, formatFigures, testFailureMessage } from './promotion-messages.ts';
import type { PromotionState, RegisteredTool, Verifier } from '../types.ts';

/** Retry delay for an unavailable panel, unless the cool-down of the policy is shorter. */
const UNAVAILABLE_COOL_DOWN_MS = 10 * 60_000;

export interface PromotionDeps {
  registry: Registry;
  verifier: Verifier;
  panel: Panel;
  approvals: Approvals;
  audit: Audit;
  records: RecordStore;
  schemas: SchemaCompiler;
  clock: Clock;
  events: EventSink;
  nonce(): string;
  /** The rules of the current policy. */
  rules(owner: ToolOwner): PromotionRules;
  limits(owner: ToolOwner): ToolLimits;
  /** Whether the agent allows the source in the stored object (forge.persistSource). */
  persistSource(owner: ToolOwner): boolean;
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

interface InProgress {
  state: PromotionState;
  done: PromiseWithResolvers<void>;
}

class PromotionProcess implements Promotion {
  readonly #deps: PromotionDeps;
  readonly #states;
  /** At most one per tool, owner and tier. */
  readonly #inProgress = new Map<string, InProgress>();

  constructor(deps: PromotionDeps) {
    this.#deps = deps;
    this.#states = createPromotionStateStore(deps.records);
  }

  evaluate(digest: Digest, owner: ToolOwner, op: CallOptions): Promise<PromotionState> {
    const subject = this.#subject(digest, owner, 'Agent');
    return this.#runExclusive(subject, async () => {
      const facts = await this.#loadInput(subject);
      const plan = planAgentPromotion(facts);
      return plan.step === 'stay' ? plan.state : this.#promoteToAgent(plan.tool, subject, facts.rules, op);
    });
  }

  requestShared(digest: Digest, owner: ToolOwner, op: CallOptions): Promise<PromotionState> {
    const subject = this.#subject(digest, owner, 'Shared');
    return this.#runExclusive(subject, async () => {
      const facts = await this.#loadInput(subject);
      const plan = planSharedPromotion(facts);
      if (plan.step === 'stay') return plan.state;
      const blocked = this.#promotionError(this.#toOrder(subject, [], 'system'));
      if (blocked !== undefined) return { state: 'Candidate', missing: [blocked] };
      this.#setState(plan.tool, subject, { state: 'Verifying' }, 'tests run again in a fresh runner');
      const figures = await reverify(plan.tool, [], this.#deps, op);
      if (figures.failedTests > 0)
        return this.#reject(plan.tool, subject, testFailureMessage(figures), facts.rules.coolDownMs);
      return this.#enterAwaitingApproval(plan.tool, subject, []);
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
    const request = await this.#requestApproval(subject, note.nonce, tool);
    const decision = await this.#deps.approvals.waitForDecision(request, op);
    const work = async (): Promise<PromotionState> => {
      const still = await this.#states.read(subject);
      if (still?.state === 'AwaitingApproval' && still.nonce === note.nonce) {
        return this.#applyDecision(subject, note, { ...decision, request }, op);
      }
      // A concurrent caller awaited the same decision and has applied it.
      const current = widestActive(this.#deps.registry, subject);
      if (current?.tier === subject.to) return { state: 'Promoted', to: subject.to };
      return { state: 'Candidate', missing: ['the decision was already applied'] };
    };
    return this.#runExclusive(subject, work, true);
  }

  async #promoteToAgent(
    tool: RegisteredTool,
    subject: PromotionSubject,
    rules: PromotionRules,
    op: CallOptions,
  ): Promise<PromotionState> {
    const blocked = this.#promotionError(this.#toOrder(subject, [], 'system'));
    if (blocked !== undefined) return { state: 'Candidate', missing: [blocked] };
    this.#setState(tool, subject, { state: 'Verifying' }, 'tests and recorded inputs run again in a fresh runner');
    const recorded = await this.#deps.registry.recordedInputs(subject.digest, subject.namespace);
    const figures = await reverify(tool, recorded, this.#deps, op);
    const gaps = verificationGaps(figures, rules);
    if (gaps.length > 0) {
      if (failedVerification(figures, rules)) return this.#reject(tool, subject, gaps.join('; '), rules.coolDownMs);
      return { state: 'Candidate', missing: gaps };
    }
    this.#setState(tool, subject, { state: 'PanelReview' }, formatFigures(figures));
    const panel = await this.#deps.panel.review(tool, { ...figures }, op);
    const gap = panel.approved ? confidenceGap('the panel', panel.confidence, rules) : undefined;
    if (!panel.approved || gap !== undefined) {
      const unavailable = panel.code === 'TEMPER_JUDGE_UNAVAILABLE';
      const coolDown = unavailable ? Math.min(UNAVAILABLE_COOL_DOWN_MS, rules.coolDownMs) : rules.coolDownMs;
      return this.#reject(tool, subject, gap ?? `panel: ${panel.reasoning}`, coolDown);
    }
    const [safety, correctness] = panel.verdicts;
    const note = `${formatFigures(figures)} → panel: safety ${safety.confidence.toFixed(2)}, correctness ${correctness.confidence.toFixed(2)}`;
    return rules.requireHuman
      ? this.#enterAwaitingApproval(tool, subject, panel.verdicts)
      : this.#promote(tool, subject, panel.verdicts, 'system', note);
  }

  /** The approval is bound to digest, tier, namespace and nonce, so only the state that can change meanwhile is checked again. */
  async #applyDecision(
    subject: PromotionSubject,
    note: Extract<StoredPromotionState, { state: 'AwaitingApproval' }>,
    decision: { decision: 'Approve' | 'Deny'; by: string; reason: string; request: string },
    op: CallOptions,
  ): Promise<PromotionState> {
    const { by, reason, request } = decision;
    const facts = {
      request: printable(request, 120),
      decision: decision.decision,
      tier: subject.to,
      tool: subject.tool,
    };
    await this.#deps.audit.append({
      action: 'approval.decided',
      actor: printable(by, 120),
      evidence: 'observed',
      subject: subject.digest,
      facts,
    });
    this.#deps.events({ type: 'approval-decided', request, decision: decision.decision, by: printable(by, 120) });
    const tool = widestActive(this.#deps.registry, subject);
    if (tool === undefined) {
      await this.#states.delete(subject);
      return { state: 'Candidate', missing: ['it was demoted before the decision'] };
    }
    const { coolDownMs } = this.#deps.rules(subject);
    if (decision.decision !== 'Approve')
      return this.#reject(tool, subject, `${printable(by, 120)} denied it: ${printable(reason, 300)}`, coolDownMs);
    if (tool.contributors.includes(by)) {
      return this.#reject(tool, subject, `${printable(by, 120)} contributed to it and must not approve it`, coolDownMs);
    }
    this.#setState(tool, subject, { state: 'Verifying' }, 'approved; tests run again in a fresh runner');
    const figures = await reverify(tool, [], this.#deps, op);
    if (figures.failedTests > 0) return this.#reject(tool, subject, testFailureMessage(figures), coolDownMs);
    return this.#promote(tool, subject, note.verdicts, by, `approved by ${printable(by, 120)}`);
  }

  async #enterAwaitingApproval(
    tool: RegisteredTool,
    subject: PromotionSubject,
    verdicts: JudgeVerdict[],
  ): Promise<PromotionState> {
    const nonce = this.#deps.nonce();
    const request = await this.#requestApproval(subject, nonce, tool);
    await this.#states.write({ ...subject, state: 'AwaitingApproval', request, nonce, verdicts });
    const { risk, reason } = approvalSummary(subject, tool);
    this.#deps.events({ type: 'approval-requested', request, tool: subject.tool, risk, reason });
    const state = { state: 'AwaitingApproval', request } as const;
    this.#setState(tool, subject, state, `awaits approval: temper approve ${request}`);
    return state;
  }

  /** Requests are idempotent by subject, so a request that was edited in its file is not the request this promotion awaits. */
  #requestApproval(subject: PromotionSubject, nonce: string, tool: RegisteredTool | undefined): Promise<string> {
    const { agent } = subject;
    const ask = {
      type: 'PromoteTool',
      agent,
      tool: subject.tool,
      subject: approvalSubject(subject, nonce),
      binding: { promotion: { tool: subject.tool, digest: subject.digest, tier: subject.to } },
      ...approvalSummary(subject, tool),
    } as const;
    return this.#deps.approvals.request(ask);
  }

  async #promote(
    tool: RegisteredTool,
    subject: PromotionSubject,
    verdicts: readonly JudgeVerdict[],
    actor: string,
    note: string,
  ): Promise<PromotionState> {
    try {
      await this.#deps.registry.promote(this.#toOrder(subject, verdicts, actor));
    } catch (error) {
      if (!isTemperError(error)) throw error;
      return { state: 'Candidate', missing: [error.message] };
    }
    await this.#states.delete(subject);
    const state = { state: 'Promoted', to: subject.to } as const;
    this.#setState(tool, subject, state, note);
    return state;
  }

  async #reject(
    tool: RegisteredTool,
    subject: PromotionSubject,
    cause: string,
    coolDownMs: number,
  ): Promise<PromotionState> {
    const reason = printable(cause, 1_000);
    const coolDownUntil = new Date(this.#deps.clock.now().getTime() + coolDownMs).toISOString();
    const facts = {
      tool: subject.tool,
      tier: subject.to,
      agent: subject.agent,
      namespace: subject.namespace,
      reason,
      coolDownUntil,
    };
    await this.#deps.audit.append({
      action: 'tool.promotion-refused',
      actor: 'system',
      evidence: 'observed',
      subject: subject.digest,
      facts,
    });
    await this.#states.write({ ...subject, state: 'Rejected', reason, coolDownUntil });
    const state = { state: 'Rejected', reason, coolDownUntil } as const;
    this.#setState(tool, subject, state, reason);
    return state;
  }

  /** Runs at most one `work` per tool, owner and tier. A concurrent call returns the state of the running one, or waits for its turn with `wait`. */
  async #runExclusive(
    subject: PromotionSubject,
    work: () => Promise<PromotionState>,
    wait = false,
  ): Promise<PromotionState> {
    const key = keyOf(subject);
    for (let running = this.#inProgress.get(key); running !== undefined; running = this.#inProgress.get(key)) {
      if (!wait) return running.state;
      await running.done.promise;
    }
    const mine: InProgress = { state: { state: 'Verifying' }, done: Promise.withResolvers() };
    this.#inProgress.set(key, mine);
    try {
      return await work();
    } catch (error) {
      // The sandbox, the models or the approvals are unavailable: no verdict about the tool; the next use retries.
      if (isTemperError(error)) return { state: 'Candidate', missing: [`${error.code}: ${messageOf(error, 300)}`] };
      throw error;
    } finally {
      this.#inProgress.delete(key);
      mine.done.resolve();
    }
  }

  #setState(tool: RegisteredTool, subject: PromotionSubject, state: PromotionState, note: string): void {
    const running = this.#inProgress.get(keyOf(subject));
    if (running !== undefined) running.state = state;
    const { digest, to } = subject;
    this.#deps.events({
      type: 'promotion',
      tool: subject.tool,
      digest,
      from: tool.tier,
      to,
      state: state.state,
      note: printable(note, 500),
    });
  }

  async #loadInput(subject: PromotionSubject): Promise<PromotionInput> {
    const { registry, clock } = this.#deps;
    const tool = widestActive(this.#deps.registry, subject);
    const pins = (tool?.artifact.implementation.steps ?? []).map((step) => splitReference(step.tool).digest);
    return {
      tool,
      uses: await registry.statistics(subject.digest, subject.namespace),
      storedState: await this.#states.read(subject),
      rules: this.#deps.rules(subject),
      dependencies: pins
        .filter((pin) => pin !== undefined)
        .map((pin) => widestActive(registry, { ...subject, digest: pin as Digest })),
      now: clock.now(),
    };
  }

  #toOrder(subject: PromotionSubject, verdicts: readonly JudgeVerdict[], actor: string): PromotionOrder {
    const { digest, agent, namespace, to } = subject;
    const owner = { agent, namespace };
    const sourceWithheld = !this.#deps.persistSource(owner);
    return { digest, owner, to, verdicts, actor, limits: this.#deps.limits(owner), sourceWithheld };
  }

  #promotionError(order: PromotionOrder): string | undefined {
    try {
      this.#deps.registry.assertPromotable(order);
      return undefined;
    } catch (error) {
      if (isTemperError(error)) return error.message;
      throw error;
    }
  }

  #subject(digest: Digest, { agent, namespace }: ToolOwner, to: 'Agent' | 'Shared'): PromotionSubject {
    const tool = this.#deps.registry.get(digest)?.artifact.name ?? 'unknown';
    return { digest, tool, agent, namespace, to };
  }
}

function keyOf({ digest, agent, namespace, to }: PromotionSubject): string {
  return `${namespace}/${agent} ${digest} ${to}`;
}
