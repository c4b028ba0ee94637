import { createDeciders } from '../../engine/deciders.ts';
import type { EngineAgent, EngineModels, EnginePorts } from '../../engine/ports.ts';
import type { Json } from '../../lib/json.ts';
import type { Decider } from '../../policy/types.ts';
import type { OwnSchedule } from '../../schedule/agent-schedule.ts';
import { policyDenied } from '../../tools/authorize.ts';
import { type Family, localChildren } from '../children/local-children.ts';
import { LocalSpecialists } from '../children/local-specialists.ts';
import type { EventAgent, LocalEvents } from '../events/local-events.ts';
import type { DeliveredMessage, LocalAsks } from '../messages/local-asks.ts';
import { localBus, type LocalSender, unknownAgent } from '../messages/local-bus.ts';
import type { LocalInboxes } from '../messages/local-inbox.ts';
import { madeSchedules, type MadeSchedulesDeps } from '../schedules/made-schedules.ts';
import { type AgentScope, type Member, memberKey, withholdsSources } from './member.ts';
import type { SharedState } from './shared-state.ts';

export type PortsToOthers = Required<Pick<EnginePorts, 'bus' | 'tasks' | 'children' | 'schedules' | 'events'>>;

export interface PortsToOthersDeps {
  readonly shared: Pick<SharedState, 'clock' | 'ids' | 'records' | 'audit' | 'withheld'>;
  readonly workspace: string;
  readonly inboxes: LocalInboxes;
  readonly asks: LocalAsks;
  readonly events: LocalEvents;
  member(scope: AgentScope): Member | undefined;
  /** The message in work in a session of an agent. Throws TEMPER_NOT_FOUND. */
  current(key: string, session: string): DeliveredMessage;
  /** An agent made a schedule, or deleted one. */
  readonly onSchedule: (member: Member, schedule: OwnSchedule, change: 'created' | 'deleted') => void;
  /** The agents of this process, as one that starts others needs them. */
  readonly family: (member: Member) => Family;
}

/** The ports of an agent to the other agents of its process: messages, answers, children, schedules and events. */
export function portsToOthers(
  member: Member,
  agent: EngineAgent,
  models: EngineModels,
  deps: PortsToOthersDeps,
): PortsToOthers {
  const { shared, inboxes, asks, events, workspace } = deps;
  const { clock, ids, records, audit, withheld } = shared;
  const key = memberKey(member);
  const deciders = createDeciders(agent, workspace);
  const clean = (input: Json): Json => (withholdsSources(member) ? withheld.json(input) : input);
  const current = (session: string): DeliveredMessage => deps.current(key, session);
  const sender = senderOf(member, deciders(false), deps);
  const of = (session: string) => localBus({ inboxes, asks, clock }, sender, session);
  const family = deps.family(member);
  const own = localChildren(member, deciders(false), family);
  const reached = { inboxes, family, current, tasks: of };
  const specialists = new LocalSpecialists(member, {
    records,
    clock,
    ids,
    ...reached,
    models,
    agent,
    decider: deciders,
  });
  const made: MadeSchedulesDeps = {
    inboxes,
    clock,
    audit,
    decider: deciders,
    current: (session) => current(session).message,
    clean,
    onChange: (schedule, change) => deps.onSchedule(member, schedule, change),
  };
  const publisher: EventAgent = { member, decider: deciders, current, clean };
  return {
    bus: of,
    tasks: of,
    children: (session) => ({
      ...own,
      specialist: (input, isTainted, op) => specialists.spawn(clean(input), { session, isTainted, op }),
    }),
    schedules: (caller) => madeSchedules(member, made, caller),
    events: (caller) => events.of(publisher, caller),
  };
}

function senderOf(member: Member, decider: Decider, { shared, ...deps }: PortsToOthersDeps): LocalSender {
  const key = memberKey(member);
  return {
    key,
    name: member.name,
    current: (session) => deps.current(key, session),
    receiver: (name) => {
      const receiver = deps.member({ name, namespace: member.namespace });
      const child = receiver?.parent === key;
      const decision = decider.decide({ kind: 'Message', agent: name, ...(child ? { child } : {}) });
      if (decision.effect !== 'Allow') throw policyDenied(decision);
      if (receiver === undefined) throw unknownAgent(name);
      return memberKey(receiver);
    },
    clean: (text) => (withholdsSources(member) ? shared.withheld.text(text) : text),
  };
}
