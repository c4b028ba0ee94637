import { scheduleOf } from '../../api/schedule/definition.ts';
import { DEFAULT_LEVELS } from '../../api/v1alpha1/actions.ts';
import { digestOf } from '../../lib/canonical.ts';
import type { Json } from '../../lib/json.ts';
import { createDecider } from '../../policy/decider.ts';
import { allowedSchedules } from '../../policy/schedules.ts';
import type { Decider } from '../../policy/types.ts';
import { definitionOf, type OwnSchedule } from '../../schedule/agent-schedule.ts';
import type { ScheduleDefinition } from '../../schedule/definition.ts';
import { type RunMessage, runOf } from '../../schedule/run-message.ts';
import { scheduleKey } from '../../schedule/wanted-schedule.ts';
import { type Member, memberKey } from '../team/member.ts';
import { type ScheduleRecords, SPEC_SCHEDULE } from './schedule-entries.ts';

/** One schedule of one agent: that of its spec, or one that the agent made. */
export interface LocalSchedule {
  readonly id: string;
  readonly definition: ScheduleDefinition;
  /** It ends after its last run. */
  readonly isOwn: boolean;
  runAt(due: number): RunMessage & { readonly tainted?: boolean };
}

export interface MemberFacts {
  readonly isSuspended: boolean;
  readonly workspace: string;
}

/** The schedules of an agent, as its manifests and its own calls define them now. The manifests are valid. */
export function memberSchedules(
  member: Member,
  { own }: Pick<ScheduleRecords, 'own'>,
  { isSuspended, workspace }: MemberFacts,
): LocalSchedule[] {
  const { spec } = member.agent;
  const key = memberKey(member);
  const generation = generationOf(spec as unknown as Json);
  const definition = scheduleOf({ key, generation, spec });
  const allowed =
    own.size === 0 ? new Set<string>() : allowedSchedules(ownDecider(member, workspace), [...own.values()]);
  const toSchedule = (one: OwnSchedule): LocalSchedule => ({
    id: one.id,
    isOwn: true,
    definition: {
      ...definitionOf(one, scheduleKey(key, one.id)),
      suspended: isSuspended || one.pause !== undefined || !allowed.has(one.id),
      generation,
    },
    runAt: (due) => runOf({ spec: undefined, own: one }, due),
  });
  const ofSpec: LocalSchedule[] =
    definition === undefined
      ? []
      : [
          {
            id: SPEC_SCHEDULE,
            isOwn: false,
            definition: { ...definition, suspended: definition.suspended || isSuspended },
            runAt: (due) => runOf({ spec: spec.schedule, own: undefined }, due),
          },
        ];
  return [...ofSpec, ...[...own.values()].map(toSchedule)];
}

/** Decides about the schedules of an agent that may not be open. No rule about schedules depends on the level. */
export function ownDecider({ name, namespace, agent, policy, parent }: Member, workspace: string): Decider {
  return createDecider({
    agent: { name, namespace, spec: agent.spec },
    policy: { name: policy.metadata.name, spec: policy.spec },
    level: DEFAULT_LEVELS.initial,
    generation: parent === undefined ? 0 : 1,
    tainted: false,
    workspace,
  });
}

const DIGITS = 12;

/** A number that changes with the spec: manifests of files have no generation. */
function generationOf(spec: Json): number {
  const start = 'sha256:'.length;
  return Number.parseInt(digestOf(spec).slice(start, start + DIGITS), 16);
}
