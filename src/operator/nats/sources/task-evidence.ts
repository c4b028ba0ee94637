import { LRUCache } from 'lru-cache';
import { entries } from '../../../lib/caches/lru-entries.ts';
import { Notifier } from '../../../lib/async/notifier.ts';
import type { Clock } from '../../../lib/clock.ts';
import { messageOf } from '../../../lib/errors.ts';
import { createNatsAudit } from '../../../nats/audit.ts';
import type { JetStreamConnection } from '../../../nats/connection/connection.ts';
import { readStoreGeneration } from '../../../nats/jetstream/store-generation.ts';
import { isDeepStrictEqual } from 'node:util';
import { changedTasks, lastTaskSequence, readTasks, readToolRecords } from '../../../nats/tasks/task-records.ts';
import { findTools, toolTasksOf } from '../../../tempering/hygiene/tool-findings.ts';
import { usedTogether } from '../../../discovery/graph/used-together.ts';
import { type TaskEvidence, type EvidenceMarks, foldEvidence } from '../../../policy/trust/evidence.ts';
import type { Logger } from '../../../telemetry/log.ts';
import type { AgentToolEvidence, ToolMarks, TrustChange, TrustEvidence } from '../../ports.ts';
import type { NatsLink } from '../nats-link.ts';

export interface NatsTrustEvidenceDeps {
  readonly link: Pick<NatsLink, 'current' | 'waitForConnection' | 'unavailableSince'>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** What is asked about one agent. */
interface Marks {
  readonly trust?: EvidenceMarks;
  readonly tools?: ToolMarks;
}

interface Folded {
  readonly marks: Marks;
  readonly trust?: TaskEvidence;
  readonly tools?: AgentToolEvidence;
}

const REFRESH_INTERVAL_MS = 5_000;
/** Agents whose folded records are kept, about 1 KiB each. The records themselves are read one agent at a time, and not kept. */
const MAX_AGENTS = 50_000;
const BATCH = 100;

/**
 * The folded task records of agents. Each round reads which agents have new records, and folds the records of those that a reconcile has
 * asked for: an agent without promoted tools under a policy without rules of trust costs nothing.
 */
export class NatsTrustEvidence implements TrustEvidence {
  readonly #deps: NatsTrustEvidenceDeps;
  readonly #folded = new LRUCache<string, Folded>(entries(MAX_AGENTS));
  readonly #requested = new Map<string, Marks>();
  readonly #changes = new Notifier();
  #store: string | undefined;
  #sequence: number | undefined;

  constructor(deps: NatsTrustEvidenceDeps) {
    this.#deps = deps;
  }

  get(agentUid: string, marks: EvidenceMarks): TaskEvidence | undefined {
    const known = this.#folded.get(agentUid);
    if (isDeepStrictEqual(known?.marks.trust, marks)) return known?.trust;
    this.#request(agentUid, { trust: marks });
    return undefined;
  }

  tools(agentUid: string, marks: ToolMarks): AgentToolEvidence | undefined {
    const known = this.#folded.get(agentUid);
    if (isDeepStrictEqual(known?.marks.tools, marks)) return known?.tools;
    this.#request(agentUid, { tools: marks });
    return undefined;
  }

  #request(agentUid: string, marks: Marks): void {
    const before = this.#requested.get(agentUid) ?? this.#folded.get(agentUid)?.marks;
    this.#requested.set(agentUid, { ...before, ...marks });
    this.#changes.notifyAll();
  }

  async record({ agent, policy, transition, key }: TrustChange): Promise<void> {
    const { kind, from, to, reason, category } = transition;
    const facts = { from, to, reason, policy: policy.name, policyGeneration: policy.generation, agentUid: agent.uid };
    await createNatsAudit(this.#deps.link.current()).append(
      { namespace: agent.namespace, agentUid: agent.uid },
      {
        action: `trust.${kind.toLowerCase()}`,
        actor: 'system',
        evidence: 'observed',
        subject: `agent/${agent.name}`,
        facts: category === undefined ? facts : { ...facts, category },
      },
      key,
    );
  }

  forget(agentUid: string): void {
    this.#folded.delete(agentUid);
    this.#requested.delete(agentUid);
  }

  async *updates(signal: AbortSignal): AsyncIterable<readonly string[]> {
    const { link, clock, log } = this.#deps;
    while (!signal.aborted) {
      const connection = await link.waitForConnection(signal);
      if (connection === undefined) return;
      try {
        await this.#findChanges(connection);
        yield* this.#foldRequested(connection, signal);
        await this.#pause(signal);
      } catch (error) {
        if (link.unavailableSince() === undefined) {
          log.warn({ error: messageOf(error, 200) }, 'task records cannot be read from NATS; retrying');
        }
        await clock.sleep(REFRESH_INTERVAL_MS, signal).catch(() => undefined);
      }
    }
  }

  /** A new store has other records, so everything is folded again. */
  async #findChanges(connection: JetStreamConnection): Promise<void> {
    const { createdAt } = await readStoreGeneration(connection);
    const known = this.#store === createdAt ? this.#sequence : undefined;
    const changed =
      known === undefined
        ? { agentUids: undefined, sequence: await lastTaskSequence(connection) }
        : await changedTasks(connection, known);
    this.#store = createdAt;
    this.#sequence = changed.sequence;
    for (const [agentUid, { marks }] of this.#folded.entries()) {
      if (changed.agentUids?.has(agentUid) === false) continue;
      if (!this.#requested.has(agentUid)) this.#requested.set(agentUid, marks);
    }
  }

  async *#foldRequested(connection: JetStreamConnection, signal: AbortSignal): AsyncIterable<readonly string[]> {
    while (this.#requested.size > 0 && !signal.aborted) {
      const batch = [...this.#requested].slice(0, BATCH);
      // The connection bounds how many are read at once.
      await Promise.all(batch.map(([agentUid, marks]) => this.#fold(connection, agentUid, marks)));
      yield batch.map(([agentUid]) => agentUid);
    }
  }

  async #fold(connection: JetStreamConnection, agentUid: string, marks: Marks): Promise<void> {
    this.#folded.set(agentUid, await fold(connection, agentUid, marks));
    if (this.#requested.get(agentUid) === marks) this.#requested.delete(agentUid);
  }

  /** Ends early when a reconcile asks for an agent. */
  async #pause(signal: AbortSignal): Promise<void> {
    const ended = new AbortController();
    const stopped = AbortSignal.any([signal, ended.signal]);
    const asked = this.#requested.size > 0 ? Promise.resolve() : this.#changes.wait(stopped);
    await Promise.race([this.#deps.clock.sleep(REFRESH_INTERVAL_MS, stopped).catch(() => undefined), asked]);
    ended.abort();
  }
}

async function fold(connection: JetStreamConnection, agentUid: string, marks: Marks): Promise<Folded> {
  const tasks = await readTasks(connection, agentUid);
  const trust = marks.trust === undefined ? {} : { trust: foldEvidence(tasks, marks.trust) };
  if (marks.tools === undefined) return { marks, ...trust };
  const { calls, orders } = await readToolRecords(connection, agentUid);
  const history = { tasks, calls };
  const findings = findTools(history, marks.tools, marks.tools.tools);
  const inService = new Set(marks.tools.tools.map(({ digest }) => digest));
  const together = usedTogether(toolTasksOf(history, (digest) => inService.has(digest)));
  return { marks, ...trust, tools: { findings, orders, usedTogether: together } };
}
