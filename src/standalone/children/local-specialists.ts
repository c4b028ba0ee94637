import { nextDepth } from '../../agent/messages/chain.ts';
import { ANNOTATIONS, LABELS } from '../../api/cluster.ts';
import { modelNames } from '../../api/names.ts';
import type { TaskSender } from '../../bus/port.ts';
import { type AgentModel, createAgentModel, resolveModelAliases } from '../../engine/agent-model.ts';
import type { EngineAgent, EngineModels } from '../../engine/ports.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import { sha256 } from '../../lib/canonical.ts';
import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import type { IdGenerator } from '../../lib/ids.ts';
import type { Json } from '../../lib/json.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { childName } from '../../policy/children/child-name.ts';
import {
  assertSpecialistLimits,
  SPECIALIST_GRACE_MS,
  SPECIALIST_JUDGE_TIMEOUT_MS,
} from '../../policy/children/specialist-limits.ts';
import { wantedSpecialist, type WantedSpecialist } from '../../policy/children/wanted-specialist.ts';
import type { Decider } from '../../policy/types.ts';
import { specialistRefusal } from '../../tempering/specialist/specialist-judge.ts';
import { policyDenied } from '../../tools/authorize.ts';
import type { DeliveredMessage } from '../messages/local-asks.ts';
import { LocalInboxes } from '../messages/local-inbox.ts';
import { inboxOf } from '../messages/message-entries.ts';
import { type Member, memberKey } from '../team/member.ts';
import { admittedSpec, childAgent, type Family } from './local-children.ts';
import { readSpecialist, type SpecialistRecord, specialistsOf, storeSpecialist } from './specialist-records.ts';

export interface LocalSpecialistsDeps {
  readonly records: RecordStore;
  readonly clock: Clock;
  readonly ids: IdGenerator;
  readonly inboxes: LocalInboxes;
  readonly family: Family;
  readonly models: EngineModels;
  /** The agent as it runs. */
  readonly agent: EngineAgent;
  readonly decider: (isTainted: boolean) => Decider;
  readonly current: (session: string) => DeliveredMessage;
  readonly tasks: (session: string) => TaskSender;
}

/** A call of `spawn_specialist`. */
interface SpecialistCall {
  readonly session: string;
  readonly isTainted: boolean;
  readonly op: CallOptions;
}

/**
 * The specialists of one agent, by the rules of clusters: policy, admission, judge, child, task. Each step is stored under the key of the
 * call, so a repeated call asks no judge, starts no second specialist and gives no second task.
 */
export class LocalSpecialists {
  readonly #parent: Member;
  readonly #deps: LocalSpecialistsDeps;

  constructor(parent: Member, deps: LocalSpecialistsDeps) {
    this.#parent = parent;
    this.#deps = deps;
  }

  /** Starts the specialist and gives it its task. Resolves with the ticket. */
  async spawn(input: Json, call: SpecialistCall): Promise<{ name: string; ticket: string }> {
    const { records, family, tasks } = this.#deps;
    const { session, isTainted, op } = call;
    const parent = this.#parent;
    const wanted = wantedSpecialist(input, parent.agent.spec, family.manifests);
    const known = await readSpecialist(records, parent.namespace, this.#id(op));
    const { name, refused } = known ?? (await this.#open(wanted, call));
    if (refused !== undefined) throw new TemperError('TEMPER_CHILD_REFUSED', refused);
    const key = `${op.key}/task`;
    const ticket = LocalInboxes.idOf(memberKey(parent), memberKey({ name, namespace: parent.namespace }), key);
    // It has its task, and may have answered and ended.
    if (inboxOf(this.#deps.inboxes.inboxes, memberKey(parent)).asks.has(ticket)) return { name, ticket };
    if (family.find(name) === undefined) {
      if (family.hasEnded(name)) throw new TemperError('TEMPER_NOT_FOUND', `specialist "${name}" was ended`);
      await this.#start(name, wanted, call);
    }
    const draft = { to: name, session, text: wanted.task, ...(isTainted ? { tainted: true } : {}) };
    await tasks(session).ask(draft, { milliseconds: 0 }, { ...op, key });
    return { name, ticket };
  }

  /** Decides about a new request and stores the verdict, also a refusal: a repeated call gets the same answer. */
  async #open(wanted: WantedSpecialist, { session, isTainted, op }: SpecialistCall): Promise<SpecialistRecord> {
    const { records, clock, decider, current } = this.#deps;
    const parent = this.#parent;
    const { message } = current(session);
    const decision = decider(isTainted).decide({ kind: 'Spawn' });
    if (decision.effect !== 'Allow') throw policyDenied(decision);
    const name = childName(parent.name, wanted.name, `${memberKey(parent)}/${op.key}`);
    nextDepth(parent.name, name, message.depth);
    await this.#assertWithinLimits(message.id);
    admittedSpec({ spec: wanted.spec }, parent, this.#deps.family);
    const refused = await this.#refusal(wanted, op);
    return this.#deps.family.change(async () => {
      await this.#assertWithinLimits(message.id);
      const time = clock.now().toISOString();
      const verdict = refused === undefined ? {} : { refused };
      const record = { name, parent: memberKey(parent), message: message.id, ...verdict, time };
      await storeSpecialist(records, parent.namespace, this.#id(op), record);
      return record;
    });
  }

  async #start(name: string, wanted: WantedSpecialist, { session }: SpecialistCall): Promise<void> {
    const { family, current } = this.#deps;
    const deadline = Date.parse(current(session).message.deadline);
    await family.change(async () => {
      if (family.find(name) !== undefined) return;
      const spec = admittedSpec({ spec: wanted.spec }, this.#parent, family);
      const child = childAgent(name, this.#parent, spec);
      const labels = { ...child.metadata.labels, [LABELS.specialist]: 'true' };
      const annotations = { [ANNOTATIONS.endsAt]: new Date(deadline + SPECIALIST_GRACE_MS).toISOString() };
      await family.add({ ...child, metadata: { ...child.metadata, labels, annotations } }, this.#parent);
    });
  }

  async #assertWithinLimits(message: string): Promise<void> {
    const { records, clock } = this.#deps;
    const { namespace } = this.#parent;
    const of = { namespace, parent: memberKey(this.#parent), message };
    const before = await specialistsOf(records, of, clock.now().getTime());
    const started = before.filter(({ refused }) => refused === undefined).length;
    assertSpecialistLimits({ started, asked: before.length });
  }

  #refusal(wanted: WantedSpecialist, op: CallOptions): Promise<string | undefined> {
    const { models, clock, ids } = this.#deps;
    const { primary, routing, fallbacks, judge, judgeMayBeAuthor } = this.#models();
    const deadline = Math.min(op.deadline, clock.monotonic() + SPECIALIST_JUDGE_TIMEOUT_MS);
    const deps = { model: models.model, judge, judgeMayBeAuthor, clock, nonce: () => ids.next('nonce') };
    const authors = modelNames({ primary, routing, fallbacks });
    return specialistRefusal(wanted, { ...deps, authors }, { ...op, deadline });
  }

  #models(): AgentModel {
    const { agent, models, decider } = this.#deps;
    return createAgentModel(resolveModelAliases(agent, models.resolve), models.resolve, decider(false));
  }

  #id({ key }: CallOptions): string {
    return sha256(`${memberKey(this.#parent)}\n${key}`).slice('sha256:'.length);
  }
}
