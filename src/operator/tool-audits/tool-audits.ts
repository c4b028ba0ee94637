import type { AuditedTool } from '../../api/v1alpha1/emergenttool.ts';
import type { Clock } from '../../lib/clock.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import { hasEnded, type StoredToolAudit, type ToolAudit } from '../../nats/promotion/tool-audits.ts';
import { TASK_TIMEOUT_MS } from '../../tool-audit/limits.ts';
import type { Cache } from '../kube/cache.ts';
import type { OperatorAudit } from '../ports.ts';
import type { PromotionStore } from '../promotion/ports.ts';
import { isInService } from '../tool/observe.ts';
import type { StoredTool } from '../tool/stored-tool.ts';
import { inNamespace, TOOL_INDEX } from '../tool/tool-index.ts';
import type { VerifierPods } from '../verifier/verifier-pods.ts';
import { afterResult, auditStatus, failed, orderOf } from './audit-steps.ts';

export interface ToolAuditsDeps {
  readonly store: Pick<
    PromotionStore,
    'assign' | 'work' | 'outputs' | 'removeVerification' | 'changedAudits' | 'writeAudit'
  >;
  readonly verifierPods: VerifierPods;
  readonly tools: Cache<StoredTool>;
  readonly audit: OperatorAudit | undefined;
  readonly clock: Clock;
  /** Called for each object whose status has a new audit, as `namespace/name`. */
  readonly requeue: (key: string) => void;
}

/** Of all namespaces together, and of one: promotions need the pods too. */
const MAX_RUNNING = 2;
const MAX_RUNNING_IN_NAMESPACE = 1;
/** Beyond the time of a task: the start of the session and the way of its result. */
const RUN_TIMEOUT_MS = TASK_TIMEOUT_MS + 60_000;
const AGAIN = 'start the audit again';

/**
 * Audits of tools by fresh agents, each in a verifier pod of its own: the pod gets one session after the other. NATS has the state after each
 * session, so the next leader goes on with the pod.
 */
export class ToolAudits {
  readonly #deps: ToolAuditsDeps;
  /** Audits that have not ended, by id. */
  #open = new Map<string, StoredToolAudit>();
  /** The last completed audit of each tool, by namespace and digest. */
  #completed = new Map<string, ToolAudit>();
  #sequence = 0;

  constructor(deps: ToolAuditsDeps) {
    this.#deps = deps;
  }

  /** The last audit of the tool, for the status of its objects. */
  of(namespace: string, digest: string): AuditedTool | undefined {
    const found = this.#completed.get(inNamespace(namespace, digest));
    return found === undefined ? undefined : auditStatus(found);
  }

  /** Reads all audits again, and keeps the pods of those that an earlier leader started. Call it before unused pods are deleted. */
  async resume(): Promise<void> {
    this.#open = new Map();
    this.#completed = new Map();
    this.#sequence = 0;
    await this.#read();
    for (const { audit } of this.#open.values())
      if (audit.pod !== undefined) this.#deps.verifierPods.use(audit.pod.uid, audit.agent.namespace);
  }

  /** Takes each audit as far as it goes. Throws TEMPER_BUS_* and ApiError; the next round goes on. */
  async round(signal: AbortSignal): Promise<void> {
    await this.#read();
    for (const stored of this.#open.values()) await this.#step(stored, signal);
  }

  async #read(): Promise<void> {
    for await (const stored of this.#deps.store.changedAudits(this.#sequence)) {
      this.#sequence = Math.max(this.#sequence, stored.revision);
      this.#keep(stored);
    }
  }

  #keep({ audit, revision }: StoredToolAudit): void {
    this.#open.delete(audit.id);
    if (!hasEnded(audit)) this.#open.set(audit.id, { audit, revision });
    if (audit.state !== 'Completed') return;
    const key = inNamespace(audit.agent.namespace, audit.digest);
    const known = this.#completed.get(key);
    if (known !== undefined && known.since >= audit.since) return;
    this.#completed.set(key, audit);
    for (const { metadata } of this.#deps.tools.byIndex(TOOL_INDEX.digest, key))
      this.#deps.requeue(`${metadata.namespace}/${metadata.name}`);
  }

  async #step(stored: StoredToolAudit, signal: AbortSignal): Promise<void> {
    const { audit } = stored;
    if (audit.pod === undefined) {
      if (!this.#isInService(audit)) {
        await this.#write(stored, failed(audit, 'the tool is not in service for the agent any more', this.#now()));
        return;
      }
      const pod = this.#hasTurn(audit) ? await this.#claim(audit, signal) : undefined;
      if (pod === undefined) return;
      const running: ToolAudit = { ...audit, state: 'Running', pod, since: this.#now().toISOString() };
      const written = await this.#write(stored, running);
      if (written === undefined) this.#deps.verifierPods.release(pod.uid);
      else await this.#run(written, pod);
      return;
    }
    await this.#run(stored, audit.pod);
  }

  /** Assigns the next session, and stores the results that the pod has sent. */
  async #run(stored: StoredToolAudit, pod: NonNullable<ToolAudit['pod']>): Promise<void> {
    const { store, verifierPods } = this.#deps;
    for (let current: StoredToolAudit | undefined = stored; current !== undefined; ) {
      const { audit }: StoredToolAudit = current;
      if (hasEnded(audit)) return;
      const round = audit.runs.length;
      const sent = await store.outputs(pod.uid, round);
      if (sent !== undefined) {
        const now = this.#now();
        const after = afterResult(audit, sent, now);
        current = await this.#write(
          current,
          after ?? failed(audit, `the pod sent a result of another form; ${AGAIN}`, now),
        );
        continue;
      }
      const problem = verifierPods.problemOf(pod) ?? this.#lateness(audit);
      if (problem !== undefined) await this.#write(current, failed(audit, `${problem}; ${AGAIN}`, this.#now()));
      else if ((await store.work(pod.uid, round)) === undefined)
        await store.assign(pod.uid, round, orderOf(audit) as unknown as Json);
      return;
    }
  }

  #lateness({ since, runs }: ToolAudit): string | undefined {
    const isLate = this.#now().getTime() - Date.parse(since) > RUN_TIMEOUT_MS;
    return isLate ? `session ${runs.length + 1} had no result in time` : undefined;
  }

  async #claim(audit: ToolAudit, signal: AbortSignal): Promise<ToolAudit['pod']> {
    const { verifierPods } = this.#deps;
    const { namespace } = audit.agent;
    const pod = await verifierPods.claim({ key: `audit/${audit.id}`, namespace, attempt: audit.id }, signal);
    const { name, uid } = pod?.metadata ?? {};
    return name === undefined || uid === undefined ? undefined : { name, uid };
  }

  #hasTurn({ agent }: ToolAudit): boolean {
    const running = [...this.#open.values()].filter(({ audit }) => audit.pod !== undefined);
    const own = running.filter(({ audit }) => audit.agent.namespace === agent.namespace);
    return running.length < MAX_RUNNING && own.length < MAX_RUNNING_IN_NAMESPACE;
  }

  #isInService({ agent, digest }: ToolAudit): boolean {
    return this.#deps.tools
      .byIndex(TOOL_INDEX.digest, inNamespace(agent.namespace, digest))
      .some((tool) => isInService(tool) && (tool.facts.tier === 'Shared' || tool.facts.agent === agent.name));
  }

  /** Undefined when another operator was faster. The record of the end comes before the state, and is stored once. */
  async #write({ revision }: StoredToolAudit, audit: ToolAudit): Promise<StoredToolAudit | undefined> {
    const { store, verifierPods } = this.#deps;
    if (hasEnded(audit)) await this.#record(audit);
    const next = await store.writeAudit(audit, revision);
    if (next === undefined) return undefined;
    this.#keep({ audit, revision: next });
    if (!hasEnded(audit)) return { audit, revision: next };
    verifierPods.forget(`audit/${audit.id}`);
    if (audit.pod === undefined) return { audit, revision: next };
    verifierPods.release(audit.pod.uid);
    // What stays after a failure expires with its bucket.
    await store.removeVerification(audit.pod.uid).catch((error: unknown) => {
      if (!isTemperError(error)) throw error;
    });
    return { audit, revision: next };
  }

  async #record(audit: ToolAudit): Promise<void> {
    const { id, agent, tool, digest, state, runs, problem, model = '' } = audit;
    const { evidence } = auditStatus(audit);
    const tokens = runs.reduce((sum, run) => sum + run.tokens, 0);
    const result = state === 'Completed' ? { evidence, model } : { reason: problem ?? '' };
    const facts = { tool, agent: agent.name, agentUid: agent.uid, namespace: agent.namespace, tokens, ...result };
    const action = state === 'Completed' ? 'tool.audited' : 'tool.audit-failed';
    const record = { action, actor: 'system', evidence: 'observed', subject: digest, facts } as const;
    await this.#deps.audit?.append(agent.namespace, record, `${action}/${id}`);
  }

  #now(): Date {
    return this.#deps.clock.now();
  }
}
