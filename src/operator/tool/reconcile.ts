import type { KubeClient } from '../../kube/client/kube-client.ts';
import type { ReconcileContext } from '../../kube/controller/controller.ts';
import type { ReconcileResult } from '../../kube/controller/result.ts';
import type { EventRecorder } from '../../kube/events/event-recorder.ts';
import type { IdGenerator } from '../../lib/ids.ts';
import type { OperatorIdentity } from '../approval/operator-identity.ts';
import type { ConditionUpdate } from '../conditions.ts';
import { parseKey } from '../kube/cache.ts';
import { StatusWriter } from '../kube/status-writer.ts';
import { type Stored, TYPES } from '../kube/types.ts';
import type { EmergentTool } from '../../api/v1alpha1/emergenttool.ts';
import type { OperatorAudit, ToolUses } from '../ports.ts';
import { ToolObserver, type ToolObserverDeps } from './observe.ts';
import { type Activity, planActivity } from './plan.ts';
import { requestObject } from '../sharing/request-object.ts';
import { createRequest } from '../sharing/create-request.ts';
import { planSharing, requested } from '../sharing/sharing.ts';
import { pruneTool, type StoredTool } from './stored-tool.ts';
import { toolStatus, toolStatusDiffers, toolStatusPatch } from './summarize.ts';
import { TransitionAudit } from './transition-audit.ts';

export interface ToolDeps extends Omit<ToolObserverDeps, 'latest'> {
  readonly client: KubeClient;
  readonly events: EventRecorder;
  readonly ids: IdGenerator;
  readonly identity: Pick<OperatorIdentity, 'name'>;
  readonly audit: OperatorAudit | undefined;
  readonly toolUses: ToolUses | undefined;
}

interface Sharing {
  readonly condition: ConditionUpdate<'Shared'>;
  readonly retryMs?: number;
}

const AUDIT_RETRY_MS = 10_000;

/**
 * Decides which EmergentTools are in service, and requests approvals for tier Shared. Writes nothing of an EmergentTool but its status, so
 * that an object from Git stays as Git has it.
 */
export class ToolReconciler {
  readonly #deps: ToolDeps;
  readonly #statuses: StatusWriter<StoredTool>;
  readonly #audit: TransitionAudit;
  readonly observer: ToolObserver;

  constructor(deps: ToolDeps) {
    this.#deps = deps;
    this.#audit = new TransitionAudit(deps.audit);
    this.#statuses = new StatusWriter<StoredTool>(deps, {
      type: TYPES.emergentTools,
      awaited: 'Active',
      differs: toolStatusDiffers,
      patch: toolStatusPatch,
      // The API server answers with the whole object.
      prune: (stored) => pruneTool(stored as unknown as Stored<EmergentTool>),
    });
    this.observer = new ToolObserver({ ...deps, latest: (tool) => this.#statuses.latest(tool) });
  }

  async reconcile(key: string, { signal }: ReconcileContext): Promise<ReconcileResult> {
    const { namespace, name } = parseKey(key);
    const cached = this.#deps.tools.get(namespace, name);
    if (cached === undefined || cached.metadata.deletionTimestamp !== undefined) {
      this.#statuses.forgetWrite(key);
      return { kind: 'done' };
    }
    const tool = this.#statuses.latest(cached);
    const operator = await this.#deps.identity.name(signal);
    const activity = planActivity(this.observer.activity(tool, operator));
    if ('waitMs' in activity) return { kind: 'requeueAfter', afterMs: activity.waitMs };
    const sharing = await this.#share(tool, activity, signal);
    await this.#report(cached, tool, { activity, sharing: sharing?.condition }, signal);
    const isAudited = await this.#audit.retry();
    const delays = [sharing?.retryMs, isAudited ? undefined : AUDIT_RETRY_MS].filter((ms) => ms !== undefined);
    return delays.length === 0 ? { kind: 'done' } : { kind: 'requeueAfter', afterMs: Math.min(...delays) };
  }

  /** Drops the in-memory state of a deleted tool. */
  forget(tool: StoredTool): void {
    this.#statuses.forget(tool);
  }

  async #share(tool: StoredTool, { status, reason }: Activity, signal: AbortSignal): Promise<Sharing | undefined> {
    if (tool.facts.tier !== 'Agent' || (status !== 'True' && reason !== 'Promoted')) return undefined;
    const observed = this.observer.sharing(tool);
    if (observed === undefined) return undefined;
    const planned = planSharing(observed);
    if (planned.step === 'stay') return planned;
    const { client, ids, toolUses } = this.#deps;
    const { agent, agents, requests } = observed;
    const request = requestObject({
      tool,
      agent,
      agents,
      nonce: ids.next('nonce'),
      attempt: `${planned.after} ${requests.length}`,
      replaced: this.observer.replaced(tool),
      reportedUses: await toolUses?.reported(tool.facts.digest, this.#uidsOf(tool, agents), signal),
    });
    await createRequest({ client, audit: this.#deps.audit }, request, signal);
    return { condition: requested(request.metadata.name) };
  }

  #uidsOf({ metadata }: StoredTool, agents: readonly string[]): string[] {
    return agents.flatMap((name) => this.#deps.agents.get(metadata.namespace, name)?.metadata.uid ?? []);
  }

  async #report(
    cached: StoredTool,
    tool: StoredTool,
    { activity, sharing }: { activity: Activity; sharing: ConditionUpdate<'Shared'> | undefined },
    signal: AbortSignal,
  ): Promise<void> {
    const status = toolStatus(tool, activity, sharing, this.#deps.clock.now());
    await this.#audit.before(tool, activity);
    const events = await this.#statuses.write(cached, tool, status, signal);
    this.#statuses.recordEvents(tool, events ?? []);
    await this.#audit.after(tool, activity);
  }
}
