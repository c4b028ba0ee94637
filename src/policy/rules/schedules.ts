import type { PreparedPolicy } from '../prepare.ts';
import { taintedRule } from './common.ts';
import { allowed, deny, passed } from './rule.ts';
import type { RequestOf, Rule } from './rule.ts';

type ScheduleRequest = RequestOf<'Schedule'>;

const DEFAULT_PER_AGENT = 50;
const DEFAULT_RUNS_PER_HOUR = 60;

/** May the agent have one more schedule that it made itself? A run starts a chain of messages of its own. */
export function scheduleRules(prepared: PreparedPolicy): Rule<ScheduleRequest>[] {
  return [
    taintedRule<ScheduleRequest>(prepared, 'schedule'),
    childRule(prepared),
    chainRule(prepared),
    grantRule(prepared),
    countRule(prepared),
    rateRule(prepared),
  ];
}

/** The budget of a tree of agents is that of its root message, which a run of a child would not have. */
function childRule({ snapshot }: PreparedPolicy): Rule<ScheduleRequest> {
  const { agent, generation = 0 } = snapshot;
  return {
    id: 'schedules.child',
    check: () =>
      generation === 0
        ? undefined
        : deny(
            `Agent "${agent.name}" is a child agent, which makes no schedules; let the agent that started it make one.`,
          ),
    explain: () => passed('the agent is not a child agent'),
  };
}

/** For the same reason: the depth, the deadline and the agents that a chain passed end with it. */
function chainRule({ snapshot }: PreparedPolicy): Rule<ScheduleRequest> {
  return {
    id: 'schedules.chain',
    check: ({ depth = 0 }) =>
      depth === 0
        ? undefined
        : deny(
            `Agent "${snapshot.agent.name}" works on a message of another agent, and makes schedules only for users and in its own runs.`,
          ),
    explain: () => passed('the message is not of another agent'),
  };
}

function grantRule({ snapshot }: PreparedPolicy): Rule<ScheduleRequest> {
  const { name, spec } = snapshot.agent;
  const granted = spec.grants?.schedules ?? 0;
  return {
    id: 'grant.schedules',
    check: ({ others = 0 }) =>
      others < granted
        ? undefined
        : deny(`Agent "${name}" may not have ${others + 1} schedules of its own: grants.schedules allows ${granted}.`),
    explain: () => allowed(`grants.schedules allows ${granted}`),
  };
}

function countRule({ snapshot }: PreparedPolicy): Rule<ScheduleRequest> {
  const { name, spec } = snapshot.policy;
  const maximum = spec.schedules?.perAgent ?? DEFAULT_PER_AGENT;
  return {
    id: 'policy.schedules',
    check: ({ others = 0 }) =>
      others < maximum
        ? undefined
        : deny(
            `An agent may not have ${others + 1} schedules of its own: schedules.perAgent of TrustPolicy "${name}" allows ${maximum}.`,
          ),
    explain: () => passed(`schedules.perAgent allows ${maximum}`),
  };
}

function rateRule({ snapshot }: PreparedPolicy): Rule<ScheduleRequest> {
  const { name, spec } = snapshot.policy;
  const maximum = spec.schedules?.runsPerHour ?? DEFAULT_RUNS_PER_HOUR;
  return {
    id: 'policy.schedules.rate',
    check: ({ runsPerHour = 0 }) =>
      runsPerHour <= maximum
        ? undefined
        : deny(
            `The schedules that the agent made would start ${runsPerHour} runs in one hour: schedules.runsPerHour of TrustPolicy "${name}" allows ${maximum}.`,
          ),
    explain: () => passed(`schedules.runsPerHour allows ${maximum}`),
  };
}
