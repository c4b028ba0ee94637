import type { OwnSchedules, ScheduleCaller } from '../../agent/tools/schedules/port.ts';
import type { Audit } from '../../audit/port.ts';
import type { Envelope } from '../../bus/port.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Json, JsonObject } from '../../lib/json.ts';
import { allowedSchedules, scheduleRequest } from '../../policy/schedules.ts';
import type { Decider } from '../../policy/types.ts';
import type { OwnSchedule } from '../../schedule/agent-schedule.ts';
import type { AgentSchedules } from '../../schedule/agent-schedules.ts';
import { describedSchedule } from '../../schedule/listed-schedule.ts';
import {
  assertNamespaceLimits,
  requireSchedule,
  scheduleIdOf,
  wantedSchedule,
  withSchedule,
} from '../../schedule/wanted-schedule.ts';
import { policyDenied } from '../../tools/authorize.ts';
import type { LocalInboxes } from '../messages/local-inbox.ts';
import { type Inboxes, inboxOf } from '../messages/message-entries.ts';
import { type AgentScope, memberKey } from '../team/member.ts';

export interface MadeSchedulesDeps {
  readonly inboxes: LocalInboxes;
  readonly clock: Clock;
  readonly audit: Pick<Audit, 'append'>;
  /** The policy of the agent for clean and for tainted sessions. */
  readonly decider: (isTainted: boolean) => Decider;
  /** The message in work in a session. Throws TEMPER_NOT_FOUND without one. */
  readonly current: (session: string) => Envelope;
  /** Removes what must not be stored from the arguments of a call. */
  readonly clean: (input: Json) => Json;
  /** The schedules of the agent have changed. */
  readonly onChange: (schedule: OwnSchedule, change: 'created' | 'deleted') => void;
}

/** The schedules that one agent makes for itself, by the rules and limits of clusters. Decision and write are one change. */
export function madeSchedules(
  { name, namespace }: AgentScope,
  deps: MadeSchedulesDeps,
  { session, isTainted }: ScheduleCaller,
): OwnSchedules {
  const { inboxes, clock, clean, current, decider, onChange } = deps;
  const key = memberKey({ name, namespace });
  const schedulesOf = (all: Inboxes): AgentSchedules => agentSchedules(all, { name, namespace });
  return {
    async create(input, op) {
      const message = current(session);
      const call = { id: scheduleIdOf(`${key}/${op.key}`), agentUid: key, session, now: clock.now().getTime() };
      const { schedule, nextRun } = wantedSchedule(clean(input), call);
      const added = isTainted ? { ...schedule, tainted: true } : schedule;
      const isNew = await inboxes.change((all) => {
        const before = schedulesOf(all);
        if (before.own.some(({ id }) => id === added.id)) return { entries: [], result: false };
        const asked = scheduleRequest(before.own, added.runsPerHour, message.depth);
        const decision = decider(isTainted).decide(asked);
        if (decision.effect !== 'Allow') throw policyDenied(decision);
        assertNamespaceLimits(namespace, ofNamespace(all, namespace));
        withSchedule(before, added);
        return { entries: [{ op: 'schedule-made', agent: key, own: added }], result: true };
      });
      if (isNew) {
        await record('schedule.created', added, message, deps, name);
        onChange(added, 'created');
      }
      return { name: added.name, nextRun };
    },
    async delete(wanted) {
      const message = current(session);
      const deleted = await inboxes.change((all) => {
        const found = requireSchedule(schedulesOf(all), wanted);
        return { entries: [{ op: 'unscheduled', agent: key, schedule: found.id }], result: found };
      });
      await record('schedule.deleted', deleted, message, deps, name);
      onChange(deleted, 'deleted');
    },
    async list() {
      const { own } = schedulesOf(inboxes.inboxes);
      const allowed = allowedSchedules(decider(false), own);
      const { states } = inboxOf(inboxes.inboxes, key).schedules;
      const schedules = own.map((one) => describedSchedule(one, states.get(one.id), allowed.has(one.id)));
      return { schedules } as unknown as JsonObject;
    },
  };
}

function agentSchedules(all: Inboxes, { name, namespace }: AgentScope): AgentSchedules {
  const key = memberKey({ name, namespace });
  return { agent: { uid: key, name, namespace }, own: [...inboxOf(all, key).schedules.own.values()] };
}

function ofNamespace(all: Inboxes, namespace: string): AgentSchedules[] {
  return [...all.keys()].flatMap((key) => {
    const [of = '', name = ''] = key.split('/');
    return of === namespace ? [agentSchedules(all, { name, namespace })] : [];
  });
}

/** Without the message, which is text of the agent. */
async function record(
  action: 'schedule.created' | 'schedule.deleted',
  { name, times, timeZone, runsPerHour, tainted = false }: OwnSchedule,
  { session, root }: Envelope,
  { audit }: Pick<MadeSchedulesDeps, 'audit'>,
  agent: string,
): Promise<void> {
  await audit.append({
    action,
    actor: `agent/${agent}`,
    evidence: 'observed',
    subject: name,
    facts: { session, rootMessage: root, times, timeZone, runsPerHour, tainted },
  });
}
