import type { Audit } from '../audit/port.ts';
import type { Verdict } from '../forge/types.ts';
import { splitReference } from '../forge/request.ts';
import type { Digest } from '../lib/canonical.ts';
import type { Clock } from '../lib/clock.ts';
import { isTemperError, messageOf, TemperError } from '../lib/errors.ts';
import { printable } from '../lib/escape.ts';
import type { RecordStore } from '../lib/records.ts';
import type { Op } from '../lib/operation.ts';
import type { Approvals } from '../tools/approvals.ts';
import type { EventSink } from '../tools/events.ts';
import type { SchemaCompiler } from '../tools/schemas.ts';
import type { Panel } from './panel.ts';
import { approvalSubject, createPromotionNotes, type PromotionNote, type PromotionSubject } from './promotion-notes.ts';
import { planToAgent, planToShared, type PromotionFacts } from './promotion-plan.ts';
import { confidenceGap, isFailure, type PromotionRules, verificationGaps } from './promotion-rules.ts';
import type { PromotionOrder } from './registered-tool.ts';
import type { Registry } from './registry.ts';
import { reverify } from './reverify.ts';
import { type ToolLimits, type ToolOwner, widestActive } from './scopes.ts';
import { askOf, figuresNote, testsFailed } from './promotion-words.ts';
import type { PromotionState, RegisteredTool, Verifier } from './types.ts';

/** A panel that could not be asked is tried again after this, however long the cool-down is. */
const UNAVAILABLE_COOL_DOWN = 10 * 60_000;

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
  /** The policy as it is now. */
  rules(owner: ToolOwner): PromotionRules;
  limits(owner: ToolOwner): ToolLimits;
  /** Does the agent let the source be kept in the object (forge.persistSource)? */
  persistSource(owner: ToolOwner): boolean;
}

export interface Promotion {
  /**
   * Call it after each successful, schema-valid use of a forged tool. Runs the whole way up as far as it goes now; a second call
   * while one is under way answers at once with where that one is. Waits for no person.
   */
  evaluate(digest: Digest, owner: ToolOwner, op: Op): Promise<PromotionState>;
  /** Asks for tier Shared, which only a person grants. */
  requestShared(digest: Digest, owner: ToolOwner, op: Op): Promise<PromotionState>;
  /** What waits for a person, also from before a restart; settle each in the background. */
  waiting(): Promise<PromotionSubject[]>;
  /** Waits until the person has decided, verifies again and does it. */
  settle(subject: PromotionSubject, op: Op): Promise<PromotionState>;
}

export function createPromotion(deps: PromotionDeps): Promotion {
  return new PromotionProcess(deps);
}

interface UnderWay {
  state: PromotionState;
  over: PromiseWithResolvers<void>;
}

class PromotionProcess implements Promotion {
  readonly #deps: PromotionDeps;
  readonly #notes;
  /** One at a time for each tool, owner and tier. */
  readonly #underWay = new Map<string, UnderWay>();

  constructor(deps: PromotionDeps) {
    this.#deps = deps;
    this.#notes = createPromotionNotes(deps.records);
  }

  evaluate(digest: Digest, owner: ToolOwner, op: Op): Promise<PromotionState> {
    const subject = this.#subject(digest, owner, 'Agent');
    return this.#alone(subject, async () => {
      const facts = await this.#facts(subject);
      const plan = planToAgent(facts);
      return plan.step === 'stay' ? plan.state : this.#raiseToAgent(plan.tool, subject, facts.rules, op);
    });
  }

  requestShared(digest: Digest, owner: ToolOwner, op: Op): Promise<PromotionState> {
    const subject = this.#subject(digest, owner, 'Shared');
    return this.#alone(subject, async () => {
      const facts = await this.#facts(subject);
      const plan = planToShared(facts);
      if (plan.step === 'stay') return plan.state;
      const blocked = this.#blocked(this.#order(subject, [], 'system'));
      if (blocked !== undefined) return { state: 'Candidate', missing: [blocked] };
      this.#reach(plan.tool, subject, { state: 'Verifying' }, 'tests run again in a fresh runner');
      const figures = await reverify(plan.tool, [], this.#deps, op);
      if (figures.failedTests > 0)
        return this.#reject(plan.tool, subject, testsFailed(figures), facts.rules.coolDownMilliseconds);
      return this.#ask(plan.tool, subject, []);
    });
  }

  waiting(): Promise<PromotionSubject[]> {
    return this.#notes.waiting();
  }

  async settle(subject: PromotionSubject, op: Op): Promise<PromotionState> {
    const note = await this.#notes.read(subject);
    if (note?.state !== 'AwaitingApproval') {
      throw new TemperError('TEMPER_PROMOTION_NOT_READY', `nobody was asked about "${subject.tool}"; ask first`);
    }
    const tool = widestActive(this.#deps.registry, subject);
    const request = await this.#requestApproval(subject, note.nonce, tool);
    const decision = await this.#deps.approvals.decided(request, op);
    const work = async (): Promise<PromotionState> => {
      const still = await this.#notes.read(subject);
      if (still?.state === 'AwaitingApproval' && still.nonce === note.nonce) {
        return this.#decided(subject, note, { ...decision, request }, op);
      }
      // Somebody else waited for the same person and has done it.
      const now = widestActive(this.#deps.registry, subject);
      if (now?.tier === subject.to) return { state: 'Promoted', to: subject.to };
      return { state: 'Candidate', missing: ['the decision was carried out before'] };
    };
    return this.#alone(subject, work, true);
  }

  async #raiseToAgent(
    tool: RegisteredTool,
    subject: PromotionSubject,
    rules: PromotionRules,
    op: Op,
  ): Promise<PromotionState> {
    const blocked = this.#blocked(this.#order(subject, [], 'system'));
    if (blocked !== undefined) return { state: 'Candidate', missing: [blocked] };
    this.#reach(tool, subject, { state: 'Verifying' }, 'tests and recorded inputs run again in a fresh runner');
    const recorded = await this.#deps.registry.recordedInputs(subject.digest, subject.namespace);
    const figures = await reverify(tool, recorded, this.#deps, op);
    const gaps = verificationGaps(figures, rules);
    if (gaps.length > 0) {
      if (isFailure(figures, rules)) return this.#reject(tool, subject, gaps.join('; '), rules.coolDownMilliseconds);
      return { state: 'Candidate', missing: gaps };
    }
    this.#reach(tool, subject, { state: 'PanelReview' }, figuresNote(figures));
    const panel = await this.#deps.panel.review(tool, { ...figures }, op);
    const gap = panel.approved ? confidenceGap('the panel', panel.confidence, rules) : undefined;
    if (!panel.approved || gap !== undefined) {
      const unavailable = panel.code === 'TEMPER_JUDGE_UNAVAILABLE';
      const coolDown = unavailable
        ? Math.min(UNAVAILABLE_COOL_DOWN, rules.coolDownMilliseconds)
        : rules.coolDownMilliseconds;
      return this.#reject(tool, subject, gap ?? `panel: ${panel.reasoning}`, coolDown);
    }
    const [safety, correctness] = panel.verdicts;
    const note = `${figuresNote(figures)} → panel: safety ${safety.confidence.toFixed(2)}, correctness ${correctness.confidence.toFixed(2)}`;
    return rules.requireHuman
      ? this.#ask(tool, subject, panel.verdicts)
      : this.#promote(tool, subject, panel.verdicts, 'system', note);
  }

  /** The approval is bound to digest, tier, namespace and nonce, so all that is left is to look again at what may have changed. */
  async #decided(
    subject: PromotionSubject,
    note: Extract<PromotionNote, { state: 'AwaitingApproval' }>,
    decision: { decision: 'Approve' | 'Deny'; by: string; reason: string; request: string },
    op: Op,
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
      await this.#notes.forget(subject);
      return { state: 'Candidate', missing: ['it was taken out of service before the decision'] };
    }
    const { coolDownMilliseconds } = this.#deps.rules(subject);
    if (decision.decision !== 'Approve')
      return this.#reject(
        tool,
        subject,
        `${printable(by, 120)} said no: ${printable(reason, 300)}`,
        coolDownMilliseconds,
      );
    if (tool.contributors.includes(by)) {
      return this.#reject(
        tool,
        subject,
        `${printable(by, 120)} contributed to it and may not approve it`,
        coolDownMilliseconds,
      );
    }
    this.#reach(tool, subject, { state: 'Verifying' }, 'approved; tests run again in a fresh runner');
    const figures = await reverify(tool, [], this.#deps, op);
    if (figures.failedTests > 0) return this.#reject(tool, subject, testsFailed(figures), coolDownMilliseconds);
    return this.#promote(tool, subject, note.verdicts, by, `approved by ${printable(by, 120)}`);
  }

  async #ask(tool: RegisteredTool, subject: PromotionSubject, verdicts: Verdict[]): Promise<PromotionState> {
    const nonce = this.#deps.nonce();
    const request = await this.#requestApproval(subject, nonce, tool);
    await this.#notes.write({ ...subject, state: 'AwaitingApproval', request, nonce, verdicts });
    const { risk, reason } = askOf(subject, tool);
    this.#deps.events({ type: 'approval-requested', request, tool: subject.tool, risk, reason });
    const state = { state: 'AwaitingApproval', request } as const;
    this.#reach(tool, subject, state, `waits for a person: temper approve ${request}`);
    return state;
  }

  /** The same subject is the same request, so a request that was changed in its file is simply not the one that is waited for. */
  #requestApproval(subject: PromotionSubject, nonce: string, tool: RegisteredTool | undefined): Promise<string> {
    const { agent } = subject;
    const ask = {
      type: 'PromoteTool',
      agent,
      tool: subject.tool,
      subject: approvalSubject(subject, nonce),
      binding: { promotion: { tool: subject.tool, digest: subject.digest, tier: subject.to } },
      ...askOf(subject, tool),
    } as const;
    return this.#deps.approvals.request(ask);
  }

  async #promote(
    tool: RegisteredTool,
    subject: PromotionSubject,
    verdicts: readonly Verdict[],
    actor: string,
    note: string,
  ): Promise<PromotionState> {
    try {
      await this.#deps.registry.promote(this.#order(subject, verdicts, actor));
    } catch (error) {
      if (!isTemperError(error)) throw error;
      return { state: 'Candidate', missing: [error.message] };
    }
    await this.#notes.forget(subject);
    const state = { state: 'Promoted', to: subject.to } as const;
    this.#reach(tool, subject, state, note);
    return state;
  }

  async #reject(
    tool: RegisteredTool,
    subject: PromotionSubject,
    why: string,
    coolDownMilliseconds: number,
  ): Promise<PromotionState> {
    const reason = printable(why, 1_000);
    const coolDownUntil = new Date(this.#deps.clock.now().getTime() + coolDownMilliseconds).toISOString();
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
    await this.#notes.write({ ...subject, state: 'Rejected', reason, coolDownUntil });
    const state = { state: 'Rejected', reason, coolDownUntil } as const;
    this.#reach(tool, subject, state, reason);
    return state;
  }

  /** While one is under way a second one gets its state, or with `wait` its turn. */
  async #alone(subject: PromotionSubject, work: () => Promise<PromotionState>, wait = false): Promise<PromotionState> {
    const key = keyOf(subject);
    for (let running = this.#underWay.get(key); running !== undefined; running = this.#underWay.get(key)) {
      if (!wait) return running.state;
      await running.over.promise;
    }
    const mine: UnderWay = { state: { state: 'Verifying' }, over: Promise.withResolvers() };
    this.#underWay.set(key, mine);
    try {
      return await work();
    } catch (error) {
      // The tool could not be run or nobody could be asked: that says nothing about it, and the next use tries again.
      if (isTemperError(error)) return { state: 'Candidate', missing: [`${error.code}: ${messageOf(error, 300)}`] };
      throw error;
    } finally {
      this.#underWay.delete(key);
      mine.over.resolve();
    }
  }

  #reach(tool: RegisteredTool, subject: PromotionSubject, state: PromotionState, note: string): void {
    const running = this.#underWay.get(keyOf(subject));
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

  async #facts(subject: PromotionSubject): Promise<PromotionFacts> {
    const { registry, clock } = this.#deps;
    const tool = widestActive(this.#deps.registry, subject);
    const pins = (tool?.artifact.implementation.steps ?? []).map((step) => splitReference(step.tool).digest);
    return {
      tool,
      uses: await registry.statistics(subject.digest, subject.namespace),
      note: await this.#notes.read(subject),
      rules: this.#deps.rules(subject),
      dependencies: pins
        .filter((pin) => pin !== undefined)
        .map((pin) => widestActive(registry, { ...subject, digest: pin as Digest })),
      now: clock.now(),
    };
  }

  #order(subject: PromotionSubject, verdicts: readonly Verdict[], actor: string): PromotionOrder {
    const { digest, agent, namespace, to } = subject;
    const owner = { agent, namespace };
    const sourceWithheld = !this.#deps.persistSource(owner);
    return { digest, owner, to, verdicts, actor, limits: this.#deps.limits(owner), sourceWithheld };
  }

  #blocked(order: PromotionOrder): string | undefined {
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
