import type { AuditTrail } from '../../audit/port.ts';
import type { AcceptedTool, ForgeCaller, RefusedTool, SessionToolRegistry } from '../../forge/types.ts';
import { SerialQueue } from '../../lib/async/serial-queue.ts';
import type { Digest } from '../../lib/canonical.ts';
import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { type ActivationLedger, demotionKey, demotionReason, foldActivations } from './activation.ts';
import { type ForgeTelemetry, forgeTelemetry } from './forge-telemetry.ts';
import { resolvePromotion, type PromotionOrder, promotedTool, sessionTool } from './registered-tool.ts';
import {
  createRejectedAttemptStore,
  rejectionRecord,
  type RejectedAttempt,
  type RejectedAttemptStore,
} from './rejected-attempts.ts';
import { assertCanActivate, isReplacedBy, isSessionToolOf, isVisible, TIERS, type ToolLimits } from './visibility.ts';
import { createToolDocumentStore, recordActivation, recordDrop, type ToolDocumentStore } from './tool-store.ts';
import type { RecordedInput, RegisteredTool, ToolScope, ToolStatistics, ToolUse } from '../types.ts';
import { createUseStore, type UseStore } from '../use/use-store.ts';

const DEFAULT_LIMITS: ToolLimits = { sessionTools: 10, agentTools: 50 };

export interface RegistryChange {
  kind: 'registered' | 'promoted' | 'superseded' | 'demoted' | 'removed';
  tool: RegisteredTool;
}

/** The forged tools of one state store: their visibility, lifecycle and use records. Only one process may open it at a time. */
export interface Registry extends SessionToolRegistry {
  /**
   * Registers a tool at tier Session, atomically. In addition to the codes of the interface it throws TEMPER_TOOL_DEMOTED for a
   * demoted digest, and TEMPER_JUDGE_UNAVAILABLE or TEMPER_JUDGE_REFUSED without an approving verdict.
   */
  register(accepted: AcceptedTool, caller: ForgeCaller, limits?: ToolLimits): Promise<void>;
  /** Active tools visible to an agent in a session, in lookup order; names are unique. */
  resolve(agent: string, namespace: string, session: string): RegisteredTool[];
  byName(name: string, scope: ToolScope): RegisteredTool | undefined;
  /** The object with this digest: active before inactive, then the widest tier. */
  get(digest: Digest): RegisteredTool | undefined;
  /** All tools, including inactive ones with their reason. */
  all(): RegisteredTool[];
  /** Promotes a tool by one tier, as a new object. `promotion.ts` decides whether it may; the registry enforces unique names and limits. */
  promote(order: PromotionOrder): Promise<RegisteredTool>;
  /** Throws the error that `promote` would throw now, so that no approval is requested in vain. */
  assertPromotable(order: PromotionOrder): void;
  /** Removes the tool from every view synchronously; durable when the promise resolves. In one namespace, or in all when it is absent. */
  demote(digest: Digest, reason: string, actor: string, namespace?: string): Promise<void>;
  /** Removes an active tool that this session of this agent forged, with its use records. Idempotent. The digest stays permitted. */
  drop(digest: Digest, scope: ToolScope): Promise<void>;
  recordUse(use: ToolUse): Promise<void>;
  statistics(digest: Digest, namespace: string): Promise<ToolStatistics>;
  recordedInputs(digest: Digest, namespace: string): Promise<RecordedInput[]>;
  rejected(agent: string, namespace: string): Promise<RejectedAttempt[]>;
  telemetry(agent: string): Promise<ForgeTelemetry>;
  /** Removes the session tools of this session of this agent only, with their use records and inputs. */
  closeSession(session: ToolScope): Promise<void>;
  /** Calls the listener after each change; returns the function that unsubscribes it. */
  onChange(listener: (change: RegistryChange) => void): () => void;
}

export interface RegistryDeps {
  records: RecordStore;
  audit: AuditTrail;
  clock: Clock;
  /** Names of built-in tools, which no forged tool may have. */
  builtIn: ReadonlySet<string>;
}

interface Activating {
  action: 'tool.accepted' | 'tool.promoted';
  actor: string;
  limits: ToolLimits;
  replaces: readonly RegisteredTool[];
}

/** Loads the stored tools and checks each one against its acceptance. Throws TEMPER_AUDIT_CHAIN_INVALID when the audit chain is invalid. */
export async function openRegistry(deps: RegistryDeps): Promise<Registry> {
  const ledger = foldActivations(await deps.audit.records());
  const store = createToolDocumentStore(deps.records);
  const stored = await store.load(ledger);
  return new RecordRegistry(
    deps,
    ledger,
    store,
    stored.map((tool) => withoutShadow(tool, deps.builtIn)),
  );
}

class RecordRegistry implements Registry {
  readonly #deps: RegistryDeps;
  readonly #ledger: ActivationLedger;
  readonly #store: ToolDocumentStore;
  readonly #uses: UseStore;
  readonly #rejected: RejectedAttemptStore;
  readonly #tools: Map<string, RegisteredTool>;
  readonly #listeners = new Set<(change: RegistryChange) => void>();
  /** Serializes changes, so that two concurrent changes cannot both find the same name free. */
  readonly #queue = new SerialQueue();

  constructor(
    deps: RegistryDeps,
    ledger: ActivationLedger,
    store: ToolDocumentStore,
    tools: readonly RegisteredTool[],
  ) {
    this.#deps = deps;
    this.#ledger = ledger;
    this.#store = store;
    this.#uses = createUseStore(deps.records);
    this.#rejected = createRejectedAttemptStore(deps.records, deps.clock);
    this.#tools = new Map(tools.map((tool) => [tool.object, tool]));
  }

  register(accepted: AcceptedTool, caller: ForgeCaller, limits: ToolLimits = DEFAULT_LIMITS): Promise<void> {
    return this.#queue.run(async () => {
      const tool = sessionTool(accepted, caller, this.#timestamp());
      const replaces = this.#actives().filter((other) => isReplacedBy(other, tool));
      await this.#activate(tool, { action: 'tool.accepted', actor: `agent/${caller.agent}`, limits, replaces });
      this.#notify('registered', tool);
      // Only the chain keeps a replaced tool: an agent may replace its tools often.
      for (const other of replaces) await this.#remove(other, `replaced by ${tool.object}`);
    });
  }

  async recordRejected(refused: RefusedTool, caller: ForgeCaller): Promise<void> {
    await this.#deps.audit.append(rejectionRecord(refused, caller, 'observed'));
    await this.#rejected.add(refused, caller);
  }

  resolve(agent: string, namespace: string, session: string): RegisteredTool[] {
    return this.#actives()
      .filter((tool) => isVisible(tool, { agent, namespace, session }))
      .sort((a, b) => TIERS.indexOf(a.tier) - TIERS.indexOf(b.tier));
  }

  byName(name: string, scope: ToolScope): RegisteredTool | undefined {
    return this.#actives().find((tool) => tool.artifact.name === name && isVisible(tool, scope));
  }

  get(digest: Digest): RegisteredTool | undefined {
    return this.#withDigest(digest).sort(widestActiveFirst)[0];
  }

  all(): RegisteredTool[] {
    return [...this.#tools.values()];
  }

  promote(order: PromotionOrder): Promise<RegisteredTool> {
    return this.#queue.run(async () => {
      const { lower, replaces } = resolvePromotion(order, this.#actives());
      const tool = promotedTool(lower, order, this.#timestamp());
      const { actor, limits } = order;
      await this.#activate(tool, { action: 'tool.promoted', actor, limits, replaces });
      this.#notify('promoted', tool);
      return tool;
    });
  }

  assertPromotable(order: PromotionOrder): void {
    const { lower, replaces } = resolvePromotion(order, this.#actives());
    const tool = promotedTool(lower, order, this.#timestamp());
    this.#assertNotDemoted(tool);
    assertCanActivate(tool, this.#actives(), { builtIn: this.#deps.builtIn, limits: order.limits, replaces });
  }

  async demote(digest: Digest, reason: string, actor: string, namespace?: string): Promise<void> {
    const printableReason = printable(reason, 500);
    const demotionReason = `demoted: ${printableReason}`;
    const inScope = ({ owner }: RegisteredTool): boolean => namespace === undefined || owner.namespace === namespace;
    this.#ledger.demoted.set(demotionKey(digest, namespace), demotionReason);
    const affected = this.#withDigest(digest).filter(inScope);
    const deactivated = affected.map((tool) => this.#deactivate(tool, demotionReason));
    affected.forEach((tool, index) => {
      const demoted = deactivated[index];
      if (tool.active && demoted !== undefined) this.#notify('demoted', demoted);
    });
    const tool = affected[0]?.artifact.name ?? 'unknown';
    const facts = { tool, reason: printableReason, ...(namespace === undefined ? {} : { namespace }) };
    await this.#deps.audit.append({ action: 'tool.demoted', actor, evidence: 'observed', subject: digest, facts });
    await this.#queue.run(async () => {
      for (const tool of this.#withDigest(digest)) if (!tool.active) await this.#store.write(tool, this.#timestamp());
    });
  }

  drop(digest: Digest, scope: ToolScope): Promise<void> {
    return this.#queue.run(async () => {
      const tool = this.#actives().find((other) => other.digest === digest && isSessionToolOf(other, scope));
      if (tool === undefined) return;
      await recordDrop(this.#deps.audit, tool);
      await this.#remove(tool, 'dropped by its agent');
    });
  }

  async recordUse(use: ToolUse): Promise<void> {
    // A reported use of a tool that the agent cannot see is ignored, so that it cannot fill the disk.
    if (this.#withDigest(use.digest).some((tool) => isVisible(tool, use))) await this.#uses.record(use);
  }

  statistics(digest: Digest, namespace: string): Promise<ToolStatistics> {
    return this.#uses.statistics(digest, namespace);
  }

  recordedInputs(digest: Digest, namespace: string): Promise<RecordedInput[]> {
    return this.#uses.recordedInputs(digest, namespace);
  }

  rejected(agent: string, namespace: string): Promise<RejectedAttempt[]> {
    return this.#rejected.list(agent, namespace);
  }

  async telemetry(agent: string): Promise<ForgeTelemetry> {
    return forgeTelemetry(await this.#deps.audit.records(), agent);
  }

  closeSession(scope: ToolScope): Promise<void> {
    return this.#queue.run(async () => {
      const { agent, namespace, session } = scope;
      const closed = this.all().filter((tool) => isSessionToolOf(tool, scope));
      const facts = { agent, namespace, tools: closed.length };
      await this.#deps.audit.append({
        action: 'session.closed',
        actor: 'system',
        evidence: 'observed',
        subject: session,
        facts,
      });
      for (const tool of closed) {
        this.#tools.delete(tool.object);
        this.#notify('removed', { ...tool, active: false, inactiveReason: 'its session was closed' });
      }
      await this.#store.deleteSession(scope);
      for (const tool of closed) await this.#deleteUnusedRecords(tool);
    });
  }

  onChange(listener: (change: RegistryChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Writes the documents, then the audit record, which is the commit point, then the view. A crash before the commit point leaves
   * documents without an acceptance, which never become active. A crash after it loses nothing.
   */
  async #activate(tool: RegisteredTool, { action, actor, limits, replaces }: Activating): Promise<void> {
    this.#assertNotDemoted(tool);
    assertCanActivate(tool, this.#actives(), { builtIn: this.#deps.builtIn, limits, replaces });
    try {
      await this.#store.write(tool, this.#timestamp());
    } catch (error) {
      await this.#store.remove(tool);
      throw error;
    }
    this.#assertNotDemoted(tool);
    await recordActivation(this.#deps.audit, tool, {
      action,
      actor,
      supersedes: replaces,
      policyRevision: limits.policyRevision,
    });
    // A user may have demoted it meanwhile. The chain gives the same result, whichever of the two records comes first.
    this.#assertNotDemoted(tool);
    const change = action === 'tool.promoted' ? 'promoted as' : 'replaced by';
    const superseded = replaces.map((other) => this.#deactivate(other, `${change} ${tool.object}`));
    this.#tools.set(tool.object, tool);
    for (const other of superseded) {
      this.#notify('superseded', other);
      await this.#store.write(other, this.#timestamp());
    }
  }

  async #remove(tool: RegisteredTool, inactiveReason: string): Promise<void> {
    this.#tools.delete(tool.object);
    this.#notify('removed', { ...tool, active: false, inactiveReason });
    await this.#store.remove(tool);
    await this.#deleteUnusedRecords(tool);
  }

  /** Deletes the use records of a digest that no tool of the namespace has any more. */
  async #deleteUnusedRecords({ digest, owner }: RegisteredTool): Promise<void> {
    const isStillUsed = this.#withDigest(digest).some((tool) => tool.owner.namespace === owner.namespace);
    if (!isStillUsed) await this.#uses.delete(digest, owner.namespace);
  }

  #deactivate(tool: RegisteredTool, inactiveReason: string): RegisteredTool {
    const inactive = { ...tool, active: false, inactiveReason };
    this.#tools.set(tool.object, inactive);
    return inactive;
  }

  #assertNotDemoted({ digest, owner }: RegisteredTool): void {
    const reason = demotionReason(this.#ledger.demoted, digest, owner.namespace);
    if (reason === undefined) return;
    throw new TemperError(
      'TEMPER_TOOL_DEMOTED',
      `this tool was ${reason}; forge a corrected one, because this digest is never accepted again`,
    );
  }

  #actives(): RegisteredTool[] {
    return this.all().filter((tool) => tool.active);
  }

  #withDigest(digest: Digest): RegisteredTool[] {
    return this.all().filter((tool) => tool.digest === digest);
  }

  #notify(kind: RegistryChange['kind'], tool: RegisteredTool): void {
    for (const listener of this.#listeners) listener({ kind, tool });
  }

  #timestamp(): string {
    return this.#deps.clock.now().toISOString();
  }
}

/** Deactivates a stored tool whose name is now that of a built-in tool, for example after an upgrade. */
function withoutShadow(tool: RegisteredTool, builtIn: ReadonlySet<string>): RegisteredTool {
  if (!tool.active || !builtIn.has(tool.artifact.name)) return tool;
  return {
    ...tool,
    active: false,
    inactiveReason: 'its name is that of a built-in tool; forge it again under another',
  };
}

function widestActiveFirst(a: RegisteredTool, b: RegisteredTool): number {
  return Number(b.active) - Number(a.active) || TIERS.indexOf(b.tier) - TIERS.indexOf(a.tier);
}
