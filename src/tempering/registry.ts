import type { AuditTrail } from '../audit/port.ts';
import type { Accepted, ForgeCaller, Refused, SessionTools } from '../forge/types.ts';
import type { Digest } from '../lib/canonical.ts';
import type { Clock } from '../lib/clock.ts';
import { TemperError } from '../lib/errors.ts';
import { printable } from '../lib/escape.ts';
import type { RecordStore } from '../lib/records.ts';
import { type ActivationLedger, demotionKey, demotionOf, foldActivations } from './activation.ts';
import { type ForgeTelemetry, forgeTelemetry } from './forge-telemetry.ts';
import { candidatesFor, type PromotionOrder, promotedTool, sessionTool } from './registered-tool.ts';
import { createRejectedAttempts, type RejectedAttempt, type RejectedAttempts } from './rejected.ts';
import { assertRoom, isVisible, TIERS, type ToolLimits } from './scopes.ts';
import { createToolStore, recordActivation, type ToolStore } from './tool-store.ts';
import type { RecordedInput, RegisteredTool, ToolScope, ToolStatistics, ToolUse } from './types.ts';
import { createUseStore, type UseStore } from './use-store.ts';

const DEFAULT_LIMITS: ToolLimits = { sessionTools: 10, agentTools: 50 };

export interface RegistryChange {
  kind: 'registered' | 'promoted' | 'superseded' | 'demoted' | 'removed';
  tool: RegisteredTool;
}

/** Forged tools of one state: who sees which, and what their record is. One process holds it at a time. */
export interface Registry extends SessionTools {
  /**
   * Registers at tier Session, whole or not at all. Beside the two codes of the interface: TEMPER_TOOL_DEMOTED for a digest
   * that was taken out, TEMPER_JUDGE_UNAVAILABLE or TEMPER_JUDGE_REFUSED without an approving verdict.
   */
  register(accepted: Accepted, caller: ForgeCaller, limits?: ToolLimits): Promise<void>;
  /** Active tools that an agent sees in a session, in lookup order; no name stands twice. */
  resolve(agent: string, namespace: string, session: string): RegisteredTool[];
  byName(name: string, scope: ToolScope): RegisteredTool | undefined;
  /** The object with this digest of the widest tier, active ones first. */
  get(digest: Digest): RegisteredTool | undefined;
  /** Every tool known, the inactive ones with their reason. */
  all(): RegisteredTool[];
  /** One tier up, as a new object. Who decides whether it may is `promotion.ts`; this keeps names unique and limits kept. */
  promote(order: PromotionOrder): Promise<RegisteredTool>;
  /** Throws what `promote` would throw now, before anybody is asked. */
  assertPromotable(order: PromotionOrder): void;
  /** Out of every view before this returns its promise; durable when it resolves. In one namespace, or everywhere. */
  demote(digest: Digest, reason: string, actor: string, namespace?: string): Promise<void>;
  recordUse(use: ToolUse): Promise<void>;
  statistics(digest: Digest, namespace: string): Promise<ToolStatistics>;
  recordedInputs(digest: Digest, namespace: string): Promise<RecordedInput[]>;
  rejected(agent: string, namespace: string): Promise<RejectedAttempt[]>;
  telemetry(agent: string): Promise<ForgeTelemetry>;
  /** Removes the session tools of exactly this session, their uses and inputs with them. */
  closeSession(session: string): Promise<void>;
  /** Told after each change; the answer ends it. */
  changes(listener: (change: RegistryChange) => void): () => void;
}

export interface RegistryDeps {
  records: RecordStore;
  audit: AuditTrail;
  clock: Clock;
  /** Names no forged tool may take. */
  builtIn: ReadonlySet<string>;
}

interface Activating {
  action: 'tool.accepted' | 'tool.promoted';
  actor: string;
  limits: ToolLimits;
  replaces: readonly RegisteredTool[];
}

/** Reads what is stored and checks each tool against its acceptance. Throws TEMPER_AUDIT_BROKEN when the chain cannot be trusted. */
export async function openRegistry(deps: RegistryDeps): Promise<Registry> {
  const ledger = foldActivations(await deps.audit.records());
  const store = createToolStore(deps.records);
  const stored = await store.load(ledger);
  return new StoredRegistry(
    deps,
    ledger,
    store,
    stored.map((tool) => withoutShadow(tool, deps.builtIn)),
  );
}

class StoredRegistry implements Registry {
  readonly #deps: RegistryDeps;
  readonly #ledger: ActivationLedger;
  readonly #store: ToolStore;
  readonly #uses: UseStore;
  readonly #rejected: RejectedAttempts;
  readonly #tools: Map<string, RegisteredTool>;
  readonly #listeners = new Set<(change: RegistryChange) => void>();
  /** Changes happen one after another, so that no two checks look at the same free name. */
  #tail: Promise<unknown> = Promise.resolve();

  constructor(deps: RegistryDeps, ledger: ActivationLedger, store: ToolStore, tools: readonly RegisteredTool[]) {
    this.#deps = deps;
    this.#ledger = ledger;
    this.#store = store;
    this.#uses = createUseStore(deps.records);
    this.#rejected = createRejectedAttempts(deps.records, deps.clock);
    this.#tools = new Map(tools.map((tool) => [tool.object, tool]));
  }

  register(accepted: Accepted, caller: ForgeCaller, limits: ToolLimits = DEFAULT_LIMITS): Promise<void> {
    return this.#inOrder(async () => {
      const tool = sessionTool(accepted, caller, this.#now());
      await this.#activate(tool, { action: 'tool.accepted', actor: `agent/${caller.agent}`, limits, replaces: [] });
      this.#tell('registered', tool);
    });
  }

  async keepRejected(refused: Refused, caller: ForgeCaller): Promise<void> {
    const tool = printable(refused.name, 80);
    await this.#deps.audit.append({
      action: 'tool.refused',
      actor: `agent/${caller.agent}`,
      evidence: 'observed',
      subject: refused.digest ?? tool,
      facts: {
        tool,
        gate: refused.gate,
        code: refused.code,
        class: refused.class,
        session: printable(caller.session, 100),
      },
    });
    await this.#rejected.keep(refused, caller);
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
    return this.#inOrder(async () => {
      const { lower, replaces } = candidatesFor(order, this.#actives());
      const tool = promotedTool(lower, order, this.#now());
      const { actor, limits } = order;
      await this.#activate(tool, { action: 'tool.promoted', actor, limits, replaces });
      this.#tell('promoted', tool);
      return tool;
    });
  }

  assertPromotable(order: PromotionOrder): void {
    const { lower, replaces } = candidatesFor(order, this.#actives());
    const tool = promotedTool(lower, order, this.#now());
    this.#assertNotDemoted(tool);
    assertRoom(tool, this.#actives(), { builtIn: this.#deps.builtIn, limits: order.limits, replaces });
  }

  async demote(digest: Digest, reason: string, actor: string, namespace?: string): Promise<void> {
    const shown = printable(reason, 500);
    const why = `demoted: ${shown}`;
    const here = ({ owner }: RegisteredTool): boolean => namespace === undefined || owner.namespace === namespace;
    this.#ledger.demoted.set(demotionKey(digest, namespace), why);
    const concerned = this.#withDigest(digest).filter(here);
    const out = concerned.map((tool) => this.#putOut(tool, why));
    concerned.forEach((tool, index) => {
      const demoted = out[index];
      if (tool.active && demoted !== undefined) this.#tell('demoted', demoted);
    });
    const tool = concerned[0]?.artifact.name ?? 'unknown';
    const facts = { tool, reason: shown, ...(namespace === undefined ? {} : { namespace }) };
    await this.#deps.audit.append({ action: 'tool.demoted', actor, evidence: 'observed', subject: digest, facts });
    await this.#inOrder(async () => {
      for (const tool of this.#withDigest(digest)) if (!tool.active) await this.#store.write(tool, this.#now());
    });
  }

  async recordUse(use: ToolUse): Promise<void> {
    // A claim about a tool the agent cannot see is no use of it, and must not fill the disk.
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

  closeSession(session: string): Promise<void> {
    return this.#inOrder(async () => {
      const closed = this.all().filter((tool) => tool.tier === 'Session' && tool.owner.session === session);
      const facts = { tools: closed.length };
      await this.#deps.audit.append({
        action: 'session.closed',
        actor: 'system',
        evidence: 'observed',
        subject: session,
        facts,
      });
      for (const tool of closed) {
        this.#tools.delete(tool.object);
        this.#tell('removed', { ...tool, active: false, inactiveReason: 'its session was closed' });
      }
      await this.#store.dropSession(session);
      for (const { digest, owner } of closed) {
        const lives = this.#withDigest(digest).some((tool) => tool.owner.namespace === owner.namespace);
        if (!lives) await this.#uses.forget(digest, owner.namespace);
      }
    });
  }

  changes(listener: (change: RegistryChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * The documents, then the record on the chain, which is the moment it counts, then the view: a crash before leaves documents
   * nobody accepted, which are never active; a crash after leaves nothing undone.
   */
  async #activate(tool: RegisteredTool, { action, actor, limits, replaces }: Activating): Promise<void> {
    this.#assertNotDemoted(tool);
    assertRoom(tool, this.#actives(), { builtIn: this.#deps.builtIn, limits, replaces });
    try {
      await this.#store.write(tool, this.#now());
    } catch (error) {
      await this.#store.remove(tool);
      throw error;
    }
    this.#assertNotDemoted(tool);
    await recordActivation(this.#deps.audit, tool, { action, actor, supersedes: replaces });
    // A person may have demoted it meanwhile; the chain says so too, whichever of the two records came first.
    this.#assertNotDemoted(tool);
    const superseded = replaces.map((other) => this.#putOut(other, `promoted as ${tool.object}`));
    this.#tools.set(tool.object, tool);
    for (const other of superseded) {
      this.#tell('superseded', other);
      await this.#store.write(other, this.#now());
    }
  }

  #putOut(tool: RegisteredTool, inactiveReason: string): RegisteredTool {
    const out = { ...tool, active: false, inactiveReason };
    this.#tools.set(tool.object, out);
    return out;
  }

  #assertNotDemoted({ digest, owner }: RegisteredTool): void {
    const reason = demotionOf(this.#ledger.demoted, digest, owner.namespace);
    if (reason === undefined) return;
    throw new TemperError(
      'TEMPER_TOOL_DEMOTED',
      `this tool was ${reason}; forge a corrected one, the same bytes stay out`,
    );
  }

  #actives(): RegisteredTool[] {
    return this.all().filter((tool) => tool.active);
  }

  #withDigest(digest: Digest): RegisteredTool[] {
    return this.all().filter((tool) => tool.digest === digest);
  }

  #tell(kind: RegistryChange['kind'], tool: RegisteredTool): void {
    for (const listener of this.#listeners) listener({ kind, tool });
  }

  #now(): string {
    return this.#deps.clock.now().toISOString();
  }

  #inOrder<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#tail.then(work, work);
    this.#tail = mine.catch(() => undefined);
    return mine;
  }
}

/** A tool that came later with the program keeps its name; the forged one has to give way. */
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
