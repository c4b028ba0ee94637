import type { Audit } from '../../audit/port.ts';
import type { JudgeVerdict } from '../../forge/types.ts';
import type { Clock } from '../../lib/clock.ts';
import { isTemperError, type TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import type { ApprovalDecision, PromotionApprovals } from '../../tools/approvals.ts';
import type { EventSink } from '../../tools/events.ts';
import {
  describeLeaving,
  leastUseful,
  leavingNote,
  replaceableTools,
  type ToolWithUses,
} from '../hygiene/least-useful.ts';
import type { PromotionOrder } from '../registry/registered-tool.ts';
import type { Registry } from '../registry/registry.ts';
import { verdictFacts } from '../registry/verdict-facts.ts';
import type { ToolLimits, ToolOwner } from '../registry/visibility.ts';
import type { PromotionState, RegisteredTool } from '../types.ts';
import type { ExclusiveRuns } from './exclusive-runs.ts';
import type { PromotionRules } from './promotion-rules.ts';
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
  /** The rules of the current policy. */
  rules(owner: ToolOwner): PromotionRules;
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
    questions: readonly string[] = [],
  ): Promise<PromotionState> {
    const nonce = this.#deps.nonce();
    const leaving = await this.toolThatLeaves(subject);
    const note = leaving === undefined ? '' : leavingNote(leaving);
    const request = await this.requestApproval(subject, nonce, tool, questions, note);
    await this.#states.write({ ...subject, state: 'AwaitingApproval', request, nonce, verdicts: [...verdicts] });
    const { risk, reason } = approvalSummary(subject, tool, questions, note);
    this.#deps.events({ type: 'approval-requested', request, tool: subject.tool, risk, reason });
    const state = { state: 'AwaitingApproval', request } as const;
    this.setState(tool, subject, state, `awaits approval: temper approve ${request}`);
    return state;
  }

  /** Requests are idempotent by subject, so a request that was edited in its file is not the request this promotion awaits. */
  requestApproval(
    subject: PromotionSubject,
    nonce: string,
    tool: RegisteredTool | undefined,
    questions: readonly string[] = [],
    leaving = '',
  ): Promise<string> {
    const { agent } = subject;
    const ask = {
      type: 'PromoteTool',
      agent,
      tool: subject.tool,
      subject: approvalSubject(subject, nonce),
      binding: { promotion: { tool: subject.tool, digest: subject.digest, tier: subject.to } },
      ...approvalSummary(subject, tool, questions, leaving),
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
      await this.#makePlace(subject);
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
    verdicts: readonly JudgeVerdict[] = [],
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
      ...(verdicts.length === 0 ? {} : { verdicts: verdicts.map(verdictFacts) }),
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

  /** Stores what stopped an attempt without a verdict. */
  stay(subject: PromotionSubject, missing: readonly string[]): Promise<void> {
    return this.#states.write({
      ...subject,
      state: 'Candidate',
      missing: missing.map((text) => printable(text, 1_000)),
    });
  }

  /** Why the registry would refuse the promotion now; undefined when it would not. */
  async promotionProblem(subject: PromotionSubject): Promise<string | undefined> {
    const problem = this.#problem(subject);
    return problem === undefined || (await this.toolThatLeaves(subject)) !== undefined ? undefined : problem.message;
  }

  /** The tool that the promotion would deactivate, because the agent has its maximum of tools. */
  async toolThatLeaves(subject: PromotionSubject): Promise<ToolWithUses | undefined> {
    const { registry } = this.#deps;
    const { whenFull } = this.#deps.rules(subject);
    const isFull = this.#problem(subject)?.code === 'TEMPER_FORGE_LIMIT_REACHED';
    if (!isFull || whenFull === 'Refuse' || subject.to !== 'Agent') return undefined;
    const tools = replaceableTools(registry.all(), subject);
    const { namespace } = subject;
    return leastUseful(
      await Promise.all(tools.map(async (tool) => ({ tool, uses: await registry.statistics(tool.digest, namespace) }))),
    );
  }

  async #makePlace(subject: PromotionSubject): Promise<void> {
    const leaving = await this.toolThatLeaves(subject);
    if (leaving === undefined) return;
    const { artifact, digest } = leaving.tool;
    const reason = `${describeLeaving(leaving)} when "${subject.tool}" was promoted; raise forge.limits.agentTools, and verify it again with temper reactivate ${artifact.name}`;
    const done = this.#deps.registry.deactivate(digest, subject, reason);
    this.#deps.events({
      type: 'demotion',
      tool: artifact.name,
      digest,
      reason: `deactivated for this agent: ${reason}`,
    });
    await done;
  }

  #problem(subject: PromotionSubject): TemperError | undefined {
    try {
      this.#deps.registry.assertPromotable(this.#toOrder(subject, [], 'system'));
      return undefined;
    } catch (error) {
      if (isTemperError(error)) return error;
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
