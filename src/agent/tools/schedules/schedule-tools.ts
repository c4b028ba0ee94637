import type { Clock } from '../../../lib/clock.ts';
import { TemperError } from '../../../lib/errors.ts';
import { type Json, member } from '../../../lib/json.ts';
import type { Decision, PolicyRequest } from '../../../policy/types.ts';
import { wantedSchedule } from '../../../schedule/wanted-schedule.ts';
import { policyDenied } from '../../../tools/authorize.ts';
import { checkedTool } from '../../../tools/checks/checked-tool.ts';
import type { CallerContext, Tool, ToolDescriptor } from '../../../tools/contract.ts';
import type { OwnSchedules, ScheduleCaller } from './port.ts';

export interface ScheduleToolDeps {
  /** Absent where nothing starts runs; every call then fails with TEMPER_NOT_FOUND. */
  schedules?: (caller: ScheduleCaller) => OwnSchedules;
  isTainted: (caller: CallerContext) => boolean;
  /** Evaluates the agent's current policy for one more schedule. */
  decide(caller: CallerContext, request: PolicyRequest): Decision;
  clock: Clock;
}

const NAME = {
  type: 'string',
  minLength: 1,
  maxLength: 40,
  pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$',
  description: 'Name of the schedule, such as daily-report',
};

export const CREATE_SCHEDULE_TOOL: ToolDescriptor = {
  name: 'schedule_create',
  description:
    'Make a schedule for yourself: you get the message at these times, also when no user writes. Gives {name, nextRun}. A schedule with one time ends after its run.',
  inputSchema: {
    type: 'object',
    properties: {
      name: NAME,
      times: {
        type: 'string',
        minLength: 5,
        maxLength: 128,
        description:
          'Five cron fields such as "0 9 * * 1-5", or "every 10m" (from 60s to 24h), or one time such as 2026-03-02T08:00:00Z, at most a year ahead',
      },
      timeZone: { type: 'string', minLength: 1, maxLength: 64, description: 'Of the cron fields; UTC by default' },
      message: {
        type: 'string',
        minLength: 1,
        maxLength: 2_048,
        description: 'What you get in each run; {{time}} becomes the due time',
      },
      continueSession: {
        type: 'boolean',
        description: 'Whether the runs continue this conversation; each run has one of its own by default',
      },
    },
    required: ['name', 'times', 'message'],
    additionalProperties: false,
  },
  outputSchema: {
    type: 'object',
    properties: { name: { type: 'string' }, nextRun: { type: 'string' } },
    required: ['name', 'nextRun'],
    additionalProperties: false,
  },
  category: 'communication',
  action: 'comms:internal',
  sideEffects: true,
  locality: 'Brokered',
  examples: [
    { name: 'daily-report', times: '0 9 * * 1-5', timeZone: 'Europe/Berlin', message: 'Write the report of {{time}}.' },
    { name: 'queue-check', times: 'every 10m', message: 'Count the waiting orders.', continueSession: true },
  ],
};

export const DELETE_SCHEDULE_TOOL: ToolDescriptor = {
  name: 'schedule_delete',
  description: 'Delete a schedule that you made. A run that has started goes on.',
  inputSchema: { type: 'object', properties: { name: NAME }, required: ['name'], additionalProperties: false },
  outputSchema: {
    type: 'object',
    properties: { name: { type: 'string' } },
    required: ['name'],
    additionalProperties: false,
  },
  category: 'communication',
  action: 'comms:internal',
  sideEffects: true,
  locality: 'Brokered',
};

export const LIST_SCHEDULES_TOOL: ToolDescriptor = {
  name: 'schedule_list',
  description: 'List the schedules that you made, with their next runs.',
  inputSchema: { type: 'object', properties: {}, additionalProperties: false },
  category: 'communication',
  action: 'comms:internal',
  sideEffects: false,
  locality: 'Brokered',
};

/** `schedule_create`, `schedule_delete` and `schedule_list`. The implementation of the port decides about each request. */
export function scheduleTools(deps: ScheduleToolDeps): Tool[] {
  return [
    checkedTool({
      descriptor: CREATE_SCHEDULE_TOOL,
      // As if it were the first: how many the agent has is for the implementation of the port to count.
      check(input, caller) {
        const unknown = { id: '', agentUid: '', session: caller.session, now: deps.clock.now().getTime() };
        const { runsPerHour } = wantedSchedule(input, unknown).schedule;
        const decision = deps.decide(caller, { kind: 'Schedule', runsPerHour });
        if (decision.effect !== 'Allow') throw policyDenied(decision);
      },
      call: async (input, context) => ({ ...(await schedulesOf(deps, context).create(input, context.op)) }),
    }),
    {
      descriptor: DELETE_SCHEDULE_TOOL,
      async call(input, context) {
        const name = nameOf(input);
        await schedulesOf(deps, context).delete(name, context.op);
        return { name };
      },
    },
    { descriptor: LIST_SCHEDULES_TOOL, call: (_input, context) => schedulesOf(deps, context).list(context.op) },
  ];
}

function schedulesOf({ schedules, isTainted }: ScheduleToolDeps, caller: CallerContext): OwnSchedules {
  if (schedules !== undefined) return schedules({ session: caller.session, isTainted: isTainted(caller) });
  throw new TemperError('TEMPER_NOT_FOUND', 'nothing starts scheduled runs here; schedules need a cluster');
}

function nameOf(input: Json): string {
  const name = member(input, 'name');
  return typeof name === 'string' ? name : '';
}
