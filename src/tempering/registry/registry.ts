import type { AuditTrail } from '../../audit/port.ts';
import type { AcceptedTool, ForgeCaller, RefusedTool, SessionToolRegistry } from '../../forge/types.ts';
import { SerialQueue } from '../../lib/async/serial-queue.ts';
import type { Digest } from '../../lib/canonical.ts';
import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { type ActivationLedger, demotionKey, demotionReason, foldActivations } from './activation.ts';
import { DEACTIVATED, type Deactivation, deactivatedReason, deactivationKey, REACTIVATED } from './deactivation.ts';
import { type ForgeTelemetry, forgeTelemetry } from './forge-telemetry.ts';
import { resolvePromotion, type PromotionOrder, promotedTool, sessionTool } from './registered-tool.ts';
import {
  createRejectedAttemptStore,
  rejectionRecord,
  type RejectedAttempt,
  type RejectedAttemptStore,
} from './rejected-attempts.ts';
import {
  assertCanActivate,
  isReplacedBy,
  isSessionToolOf,
  isVisible,
  TIERS,
  type ToolLimits,
  type ToolOwner,
} from './visibility.ts';
import { createToolDocumentStore, recordActivation, recordDrop, type ToolDocumentStore } from './tool-store.ts';
import type { SourceStore } from '../withheld/source-store.ts';
import type { WithheldSources } from '../withheld/withheld-sources.ts';
import { refusalWithoutWords, toolWithoutWords } from '../withheld/without-words.ts';
import type { RecordedInput, RegisteredTool, ToolScope, ToolStatistics, ToolUse } from '../types.ts';
import { VERIFIED, verificationKey } from '../verification/verification-times.ts';
import { createUseStore, type UseStore } from '../use/use-store.ts';

const DEFAULT_LIMITS: ToolLimits = { sessionTools: 10, agentTools: 50 };

export interface RegistryChange {
  kind: 'registered' | 'promoted' | 'superseded' | 'demoted' | 'deactivated' | 'reactivated' | 'removed';
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
  /**
   * Removes the tool from the views of one agent synchronously; durable when the promise resolves. The agent cannot forge the same
   * digest again. Other agents keep a Shared tool.
   */
  deactivate(digest: Digest, owner: ToolOwner, reason: string): Promise<void>;
  /**
   * Reverses `deactivate`, after the caller has verified the tool again. Throws TEMPER_NOT_FOUND for a tool that is not deactivated, and
   * the codes of `register` when its name or place is taken.
   */
  reactivate(
    digest: Digest,
    owner: ToolOwner,
    order: { reason: string; actor: string; limits: ToolLimits },
  ): Promise<void>;
  deactivation(digest: Digest, owner: ToolOwner): Deactivation | undefined;
  /** When the tool was last reactivated, in epoch milliseconds; 0 when it never was. */
  reactivatedAt(digest: Digest, owner: ToolOwner): number;
  /** Records that the tests of an active tool passed again. */
  recordVerification(digest: Digest, owner: ToolOwner): Promise<void>;
  /** When the tests of the tool last passed again, also before a reactivation, in epoch milliseconds; 0 when they never did. */
  verifiedAt(digest: Digest, owner: ToolOwner): number;
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
  /** The encrypted store of withheld sources. Absent for a registry that is only read. */
  sources?: SourceStore;
  /** Learns the sources that are withheld (`forge.persistSource: false`). */
  withheld?: WithheldSources;
  /** Whether the sources of this agent are withheld; absent: those of every agent, when there is `withheld`. */
  isWithheld?: (owner: ToolOwner) => boolean;
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
  const store = createToolDocumentStore(deps.records, deps.sources);
  const stored = await store.load(ledger);
  for (const { sourceWithheld, artifact } of stored) {
    if (sourceWithheld) deps.withheld?.learn(artifact.implementation.source ?? '');
  }
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
      const tool = this.#withheld(sessionTool(accepted, caller, this.#timestamp()));
      const replaces = this.#actives().filter((other) => isReplacedBy(other, tool));
      await this.#activate(tool, { action: 'tool.accepted', actor: `agent/${caller.agent}`, limits, replaces });
      this.#notify('registered', tool);
      // Only the chain keeps a replaced tool: an agent may replace its tools often.
      for (const other of replaces) await this.#remove(other, `replaced by ${tool.object}`);
    });
  }

  async recordRejected(refused: RefusedTool, caller: ForgeCaller): Promise<void> {
    const stored = this.#withheldOf(caller) === undefined ? refused : refusalWithoutWords(refused);
    await this.#deps.audit.append(rejectionRecord(stored, caller, 'observed'));
    await this.#rejected.add(stored, caller);
  }

  resolve(agent: string, namespace: string, session: string): RegisteredTool[] {
    return this.#actives()
      .filter((tool) => this.#isUsable(tool, { agent, namespace, session }))
      .sort((a, b) => TIERS.indexOf(a.tier) - TIERS.indexOf(b.tier));
  }

  byName(name: string, scope: ToolScope): RegisteredTool | undefined {
    return this.#actives().find((tool) => tool.artifact.name === name && this.#isUsable(tool, scope));
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
      const promoted = promotedTool(lower, order, this.#timestamp());
      const tool = promoted.sourceWithheld ? toolWithoutWords(promoted) : promoted;
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

  async deactivate(digest: Digest, owner: ToolOwner, text: string): Promise<void> {
    const { agent, namespace } = owner;
    const reason = printable(text, 500);
    const isOwn = ({ tier, owner: of }: RegisteredTool): boolean =>
      tier !== 'Shared' && of.agent === agent && of.namespace === namespace;
    const affected = this.#withDigest(digest).filter((tool) => tool.active && (tool.tier === 'Shared' || isOwn(tool)));
    const own = affected.filter(isOwn);
    const objects = own.map(({ object }) => object);
    this.#ledger.deactivations.current.set(deactivationKey(owner, digest), { reason, objects });
    for (const tool of own) this.#deactivate(tool, deactivatedReason(reason));
    for (const tool of affected) this.#notify('deactivated', this.#tools.get(tool.object) ?? tool);
    const facts = { tool: affected[0]?.artifact.name ?? 'unknown', agent, namespace, objects, reason };
    await this.#deps.audit.append({
      action: DEACTIVATED,
      actor: 'system',
      evidence: 'observed',
      subject: digest,
      facts,
    });
    await this.#queue.run(async () => {
      for (const object of objects) await this.#writeIfStored(object);
    });
  }

  reactivate(
    digest: Digest,
    owner: ToolOwner,
    { reason, actor, limits }: { reason: string; actor: string; limits: ToolLimits },
  ): Promise<void> {
    return this.#queue.run(async () => {
      const key = deactivationKey(owner, digest);
      const { current, reactivatedAt } = this.#ledger.deactivations;
      const objects = current.get(key)?.objects;
      if (objects === undefined)
        throw new TemperError('TEMPER_NOT_FOUND', `agent "${owner.agent}" has no deactivated tool ${digest}`);
      const own = objects.flatMap((object) => this.#tools.get(object) ?? []).filter((tool) => !tool.active);
      for (const tool of own) {
        this.#assertNotBlocked(digest, owner.namespace);
        assertCanActivate(tool, this.#actives(), { builtIn: this.#deps.builtIn, limits, replaces: [] });
      }
      const tool = this.get(digest)?.artifact.name ?? 'unknown';
      const facts = { tool, ...owner, objects: own.map(({ object }) => object), reason: printable(reason, 500) };
      await this.#deps.audit.append({ action: REACTIVATED, actor, evidence: 'observed', subject: digest, facts });
      current.delete(key);
      reactivatedAt.set(key, this.#deps.clock.now().getTime());
      for (const { inactiveReason: _, ...active } of own) {
        this.#tools.set(active.object, { ...active, active: true });
        await this.#writeIfStored(active.object);
      }
      const changed = this.get(digest);
      if (changed !== undefined) this.#notify('reactivated', changed);
    });
  }

  deactivation(digest: Digest, owner: ToolOwner): Deactivation | undefined {
    return this.#ledger.deactivations.current.get(deactivationKey(owner, digest));
  }

  reactivatedAt(digest: Digest, owner: ToolOwner): number {
    return this.#ledger.deactivations.reactivatedAt.get(deactivationKey(owner, digest)) ?? 0;
  }

  async recordVerification(digest: Digest, { namespace }: ToolOwner): Promise<void> {
    const tool = this.get(digest)?.artifact.name ?? 'unknown';
    const facts = { tool, namespace };
    const record = { action: VERIFIED, actor: 'system', evidence: 'observed', subject: digest, facts } as const;
    await this.#deps.audit.append(record);
    this.#ledger.verifications.set(verificationKey(digest, namespace), this.#deps.clock.now().getTime());
  }

  verifiedAt(digest: Digest, owner: ToolOwner): number {
    const passedAt = this.#ledger.verifications.get(verificationKey(digest, owner.namespace)) ?? 0;
    return Math.max(passedAt, this.reactivatedAt(digest, owner));
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

  #withheldOf(owner: ToolOwner): WithheldSources | undefined {
    const { withheld, isWithheld } = this.#deps;
    return isWithheld === undefined || isWithheld(owner) ? withheld : undefined;
  }

  #withheld(tool: RegisteredTool): RegisteredTool {
    const withheld = this.#withheldOf(tool.owner);
    const { source } = tool.artifact.implementation;
    if (withheld === undefined || source === undefined) return tool;
    // The gates have changed the source that the model wrote.
    withheld.learn(source);
    return toolWithoutWords({ ...tool, sourceWithheld: true });
  }

  /** Deletes the use records of a digest that no tool of the namespace has any more, and a source that no tool has any more. */
  async #deleteUnusedRecords({ digest, owner }: RegisteredTool): Promise<void> {
    if (!this.#withDigest(digest).some((tool) => tool.sourceWithheld)) await this.#store.removeSource(digest);
    const isStillUsed = this.#withDigest(digest).some((tool) => tool.owner.namespace === owner.namespace);
    if (!isStillUsed) await this.#uses.delete(digest, owner.namespace);
  }

  #deactivate(tool: RegisteredTool, inactiveReason: string): RegisteredTool {
    const inactive = { ...tool, active: false, inactiveReason };
    this.#tools.set(tool.object, inactive);
    return inactive;
  }

  #assertNotDemoted({ digest, owner }: RegisteredTool): void {
    const deactivation = this.deactivation(digest, owner);
    this.#assertNotBlocked(digest, owner.namespace);
    if (deactivation === undefined) return;
    throw new TemperError(
      'TEMPER_TOOL_DEMOTED',
      `this tool was ${deactivatedReason(deactivation.reason)}; forge a corrected one, because only a user can reactivate this digest`,
    );
  }

  #assertNotBlocked(digest: Digest, namespace: string): void {
    const reason = demotionReason(this.#ledger.demoted, digest, namespace);
    if (reason === undefined) return;
    throw new TemperError(
      'TEMPER_TOOL_DEMOTED',
      `this tool was ${reason}; forge a corrected one, because this digest is never accepted again`,
    );
  }

  #isUsable(tool: RegisteredTool, scope: ToolScope): boolean {
    return isVisible(tool, scope) && this.deactivation(tool.digest, scope) === undefined;
  }

  /** A session that was closed meanwhile has no documents any more. */
  async #writeIfStored(object: string): Promise<void> {
    const tool = this.#tools.get(object);
    if (tool !== undefined) await this.#store.write(tool, this.#timestamp());
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

/** What judges write may quote the source; the lines that they cite are numbers. */
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
