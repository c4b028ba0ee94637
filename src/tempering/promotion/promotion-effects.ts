import type { Audit } from '../../audit/port.ts';
import type { JudgeVerdict } from '../../forge/types.ts';
import type { Clock } from '../../lib/clock.ts';
import { isTemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import type { ApprovalDecision, PromotionApprovals } from '../../tools/approvals.ts';
import type { EventSink } from '../../tools/events.ts';
import type { PromotionOrder } from '../registry/registered-tool.ts';
import type { Registry } from '../registry/registry.ts';
import type { ToolLimits, ToolOwner } from '../registry/visibility.ts';
import type { PromotionState, RegisteredTool } from '../types.ts';
import type { ExclusiveRuns } from './exclusive-runs.ts';
import { approvalSummary } from './promotion-messages.ts';
import { approvalSubject, type PromotionStateStore, type PromotionSubject } from './promotion-state-store.ts';

export interface PromotionEffectDeps {
  registry: Registry;
  approvals: PromotionApprovals;
  audit: Audit;
  clock: Clock;
  events: EventSink;
  nonce(): string;
  limits(owner: ToolOwner): ToolLimits;
  /** Whether the agent allows the source in the stored object (forge.persistSource). */
  persistSource(owner: ToolOwner): boolean;
}

/** What a step of a promotion changes: stored state, audit chain, approvals, registry and events. Decides nothing. */
export class PromotionEffects {
  readonly #deps: PromotionEffectDeps;
  readonly #states: PromotionStateStore;
  readonly #runs: ExclusiveRuns;

  constructor(deps: PromotionEffectDeps, states: PromotionStateStore, runs: ExclusiveRuns) {
    this.#deps = deps;
    this.#states = states;
    this.#runs = runs;
  }

  setState(tool: RegisteredTool, subject: PromotionSubject, state: PromotionState, note: string): void {
    this.#runs.setState(subject, state);
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

  async awaitApproval(
    tool: RegisteredTool,
    subject: PromotionSubject,
    verdicts: readonly JudgeVerdict[],
  ): Promise<PromotionState> {
    const nonce = this.#deps.nonce();
    const request = await this.requestApproval(subject, nonce, tool);
    await this.#states.write({ ...subject, state: 'AwaitingApproval', request, nonce, verdicts: [...verdicts] });
    const { risk, reason } = approvalSummary(subject, tool);
    this.#deps.events({ type: 'approval-requested', request, tool: subject.tool, risk, reason });
    const state = { state: 'AwaitingApproval', request } as const;
    this.setState(tool, subject, state, `awaits approval: temper approve ${request}`);
    return state;
  }

  /** Requests are idempotent by subject, so a request that was edited in its file is not the request this promotion awaits. */
  requestApproval(subject: PromotionSubject, nonce: string, tool: RegisteredTool | undefined): Promise<string> {
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

  async recordDecision(
    { digest, to, tool }: PromotionSubject,
    { decision, by }: ApprovalDecision,
    request: string,
  ): Promise<void> {
    const actor = printable(by, 120);
    const facts = { request: printable(request, 120), decision, tier: to, tool };
    const record = { action: 'approval.decided', actor, evidence: 'observed', subject: digest, facts } as const;
    await this.#deps.audit.append(record);
    this.#deps.events({ type: 'approval-decided', request, decision, by: actor });
  }

  async promote(
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
    this.setState(tool, subject, state, note);
    return state;
  }

  async reject(
    tool: RegisteredTool,
    subject: PromotionSubject,
    { cause, coolDownMs }: { cause: string; coolDownMs: number },
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
    this.setState(tool, subject, state, reason);
    return state;
  }

  /** Why the registry would refuse the promotion now; undefined when it would not. */
  promotionProblem(subject: PromotionSubject): string | undefined {
    try {
      this.#deps.registry.assertPromotable(this.#toOrder(subject, [], 'system'));
      return undefined;
    } catch (error) {
      if (isTemperError(error)) return error.message;
      throw error;
    }
  }

  #toOrder(subject: PromotionSubject, verdicts: readonly JudgeVerdict[], actor: string): PromotionOrder {
    const { digest, agent, namespace, to } = subject;
    const owner = { agent, namespace };
    const sourceWithheld = !this.#deps.persistSource(owner);
    return { digest, owner, to, verdicts, actor, limits: this.#deps.limits(owner), sourceWithheld };
  }
}
