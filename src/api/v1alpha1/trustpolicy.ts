import { Priority } from './agent/priority.ts';
import { Type, type Static } from 'typebox';
import {
  ACTION_CATEGORIES,
  ACTION_TYPES,
  BUILTIN_LEVELS,
  CUSTOM_ENTRY_PATTERN,
  DEFAULT_LEVELS,
  MAX_ACTION_LENGTH,
  TOOL_CATEGORIES,
} from './actions.ts';
import {
  Autonomy,
  Bytes,
  Conditions,
  Cpu,
  Decimal,
  Duration,
  LevelName,
  ModelName,
  ObservedGeneration,
  Text,
  ToolApi,
  atomicListOf,
  closed,
  count,
  patternsOf,
  setOf,
} from './common.ts';
import type { Resource } from './common.ts';
import { ChildLimits } from './trust/child-limits.ts';
import { CustomActions } from './trust/custom-actions.ts';
import { OutputScan } from './trust/output-scan.ts';
import { ScheduleLimits } from './trust/schedule-limits.ts';
import { Decay, Strategy } from './trust/strategy.ts';
import { PrivateData } from './trust/private-data.ts';
import { Tainted } from './trust/tainted.ts';

const ActionEntry = Type.String({
  minLength: 1,
  maxLength: MAX_ACTION_LENGTH,
  description:
    'An action type as `category:action`, or a category, which covers all its actions: a built-in one, or one of `actions`.',
  'x-temper-enum': [...ACTION_TYPES, ...ACTION_CATEGORIES],
  'x-temper-pattern': `^(${[...ACTION_TYPES, ...ACTION_CATEGORIES].join('|')}|${CUSTOM_ENTRY_PATTERN})$`,
});

const actionsOf = (description: string) => atomicListOf(ActionEntry, 100, description);

/** The six dimensions that an access level limits. */
export const SubConstraints = Type.Object(
  {
    files: Type.Optional(
      Type.Enum(['Workspace', 'Project', 'Full'], {
        description: 'File access: the workspace, the project, or all files.',
      }),
    ),
    network: Type.Optional(
      Type.Enum(['None', 'Allowlist', 'Open'], {
        description: 'Network access: none, the granted hosts, or all hosts that `egress.allow` permits.',
      }),
    ),
    git: Type.Optional(
      Type.Enum(['LocalOnly', 'ReadAndBranch', 'Full'], {
        description: 'Git access: local only, read and create branches, or all operations including push.',
      }),
    ),
    code: Type.Optional(
      Type.Enum(['Isolated'], {
        description: 'Code execution: in the sandbox, at every level. There is no other value.',
      }),
    ),
    terminal: Type.Optional(
      Type.Enum(['None', 'RestrictedCommands', 'Full'], {
        description: 'Terminal access: none, the granted programs, or all programs.',
      }),
    ),
    requireApproval: Type.Optional(actionsOf('Actions that need the decision of an approver.')),
  },
  closed,
);
export type SubConstraints = Static<typeof SubConstraints>;

const CustomLevel = Type.Object(
  {
    name: { ...LevelName, description: 'The name of the level. Must differ from the built-in names.' },
    base: Type.Enum([...BUILTIN_LEVELS], {
      description: 'The built-in level with the same rank. The custom level may not allow more than this level.',
    }),
    categories: setOf(
      Type.Enum([...TOOL_CATEGORIES], { description: 'A tool category.' }),
      TOOL_CATEGORIES.length,
      'The allowed tool categories. A subset of the categories of the base level.',
    ),
    constraints: Type.Required(SubConstraints, {
      ...closed,
      description: 'The limits of the level. All six fields are required.',
    }),
  },
  closed,
);

const Forge = Type.Object(
  {
    apis: Type.Optional({ ...setOf(ToolApi, 5, 'Host functions that forged tools may use.'), default: [] }),
    domains: Type.Optional({
      ...patternsOf('Patterns for the hosts that forged tools may connect to with `fetch`.'),
      default: [],
    }),
    runningCalls: Type.Optional(
      Type.Enum(['Finish', 'End'], {
        default: 'Finish',
        description:
          'What happens to the running calls of a tool that leaves service (demoted, replaced, dropped or deactivated): they finish, or they end with an error.',
      }),
    ),
    limits: Type.Optional(
      Type.Object(
        {
          duration: Type.Optional({
            ...Duration,
            default: '5s',
            description: 'Maximum duration of one execution, from 1ms to 30s.',
          }),
          memory: Type.Optional({
            ...Bytes,
            default: '128Mi',
            description: 'Maximum memory of one execution, from 8Mi to 1Gi.',
          }),
          sessionTools: Type.Optional(
            count(0, 100, 'Maximum number of tools that one session forged. Imported tools do not count.', 10),
          ),
          agentTools: Type.Optional(
            count(
              0,
              500,
              'Maximum number of tools of tier Agent per agent, and apart from them of imported tools.',
              50,
            ),
          ),
          whenFull: Type.Optional(
            Type.Enum(['Refuse', 'DeactivateLeastUseful'], {
              description:
                'What a promotion to tier Agent does when the agent has `agentTools` tools: it waits, or deactivates the tool that the fewest messages used. When absent: `Refuse` with strategy `Disabled`, else `DeactivateLeastUseful`.',
            }),
          ),
          minTestCases: Type.Optional(count(1, 50, 'Minimum number of test cases in a forge request.', 1)),
        },
        { ...closed, description: 'Limits on the number of forged tools and on one execution.' },
      ),
    ),
  },
  { ...closed, description: 'The limits for all forged tools.' },
);

const Examination = Type.Object(
  {
    maxDisagreements: Type.Optional(count(0, 1_000, 'Failed cases of refusing checks, above which it refuses.', 0)),
    maxFailedInputsPercent: Type.Optional(count(0, 100, 'Failures on generated inputs, above which it refuses.', 90)),
  },
  { ...closed, description: 'The limits for the examination with inputs that the author of a tool did not choose.' },
);

const Promotion = Type.Object(
  {
    toAgent: Type.Optional(
      Type.Object(
        {
          minSuccessfulUses: Type.Optional(count(1, 10_000, 'Minimum number of successful uses.', 5)),
          minSuccessPercent: Type.Optional(count(0, 100, 'Minimum success rate, in percent of all uses.', 80)),
          minDistinctInputs: Type.Optional(
            count(1, 50, 'Minimum number of distinct inputs among the successful uses.', 3),
          ),
          minJudgeConfidencePercent: Type.Optional(count(0, 100, 'Minimum confidence of the judge, in percent.', 80)),
          confidenceBound: Type.Optional(
            Type.Enum(['Rate', 'Wilson'], {
              default: 'Rate',
              description:
                'The value to compare with `minSuccessPercent`: the success rate, or the lower bound of its 95 % Wilson interval.',
            }),
          ),
          coolDown: Type.Optional({
            ...Duration,
            default: '24h',
            description: 'Minimum time between a rejected promotion and the next attempt.',
          }),
          reportedEvidence: Type.Optional(
            Type.Enum(['Deny', 'Allow'], {
              default: 'Deny',
              description:
                'Whether recorded answers that only the pod of the agent reported may carry a promotion. They never carry one to tier Shared.',
            }),
          ),
          requireHuman: Type.Optional(
            Type.Boolean({
              default: false,
              description: 'Whether a promotion also needs an approver. A review by the panel is always required.',
            }),
          ),
          examination: Type.Optional(Examination),
        },
        { ...closed, description: 'The requirements for a promotion from tier Session to tier Agent.' },
      ),
    ),
    toShared: Type.Optional(
      Type.Object(
        {
          minAgents: Type.Optional(
            count(1, 100, 'Minimum number of agents of the namespace that have the tool at tier Agent.', 1),
          ),
          gitOps: Type.Optional(
            Type.Object(
              {
                connection: Text(63, 'The connection in the gateway configuration that opens the pull request.'),
                branch: Text(255, 'The target branch of the pull request.'),
                path: Text(255, 'The folder in the repository for the two files of the pull request.'),
              },
              { ...closed, description: 'Request the approval with a pull request.' },
            ),
          ),
        },
        {
          ...closed,
          description:
            'The requirements for a promotion from tier Agent to tier Shared. An approver is always required.',
        },
      ),
    ),
  },
  { ...closed, description: 'The requirements for the promotion of forged tools.' },
);

const Quotas = Type.Object(
  {
    agents: Type.Optional(count(0, 100_000, 'Maximum number of agents under this policy.')),
    tokensPerHour: Type.Optional(count(0, 1e12, 'Model tokens per clock hour (UTC), all agents together.')),
    tokensPerDay: Type.Optional(count(0, 1e12, 'Model tokens per day (UTC), all agents together.')),
    costPerHour: Type.Optional({
      ...Decimal,
      description: 'Model cost per clock hour (UTC), all agents together, as a string: `"2.00"`.',
    }),
    costPerDay: Type.Optional({
      ...Decimal,
      description: 'Model cost per day (UTC), all agents together, as a string: `"20.00"`.',
    }),
    costPerMonth: Type.Optional({
      ...Decimal,
      description: 'Model cost per month (UTC), all agents together, as a string: `"300.00"`.',
    }),
    cpu: Type.Optional({ ...Cpu, description: 'CPU requests of all agent pods together: `"8"`.' }),
    memory: Type.Optional({ ...Bytes, description: 'Memory limits of all agent pods together: `16Gi`.' }),
  },
  {
    ...closed,
    description:
      'How much all agents under this policy may use together. An absent quota means no limit. 0 allows no use.',
  },
);

const RiskApprovals = Type.Object(
  {
    risk: Type.Enum(['low', 'medium', 'high', 'critical'], { description: 'The risk of the call.' }),
    timeout: Type.Optional({
      ...Duration,
      description: 'How long a request of this risk stays pending. When absent, the timeout of all requests.',
    }),
    onTimeout: Type.Optional(
      Type.Enum(['Wait', 'Deny', 'Approve'], {
        description:
          'What happens after the timeout. `Approve` is only allowed for the risks low and medium, and needs a timeout. When absent, the setting of all requests.',
      }),
    ),
  },
  { ...closed, description: 'Settings for the calls of one risk.' },
);

const EscalationStep = Type.Object(
  {
    after: { ...Duration, description: 'The time since the request.' },
    to: atomicListOf(
      Text(253, 'A user, a group or another address, such as `group:platform-oncall`. Text for human readers.'),
      16,
      'Who is asked then.',
    ),
  },
  { ...closed, description: 'Who is asked after some time.' },
);

export const TrustPolicySpec = Type.Object(
  {
    description: Type.Optional(Text(1024, 'A description of the purpose of the policy, for human readers.')),
    level: Type.Optional(
      Type.Object(
        {
          initial: Type.Optional({
            ...LevelName,
            default: DEFAULT_LEVELS.initial,
            description: 'The level of a new agent. Must not be elevated or a custom level with base elevated.',
          }),
          ceiling: Type.Optional({
            ...LevelName,
            default: DEFAULT_LEVELS.ceiling,
            description:
              'The highest level that an agent can have. With an automatic strategy, elevated must also be in `strategy.requireHuman`.',
          }),
        },
        {
          ...closed,
          description:
            'The access levels of agents, in the order sandboxed < restricted < standard < elevated. Custom levels rank with their base level.',
        },
      ),
    ),
    levels: Type.Optional(
      Type.Array(CustomLevel, {
        maxItems: 8,
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['name'],
        description: 'Custom access levels.',
      }),
    ),
    constraints: Type.Optional({
      ...SubConstraints,
      description: 'Additional limits for all levels. A field applies only where it is stricter than the level.',
    }),
    strategy: Type.Optional(Strategy),
    decay: Type.Optional(Decay),
    autonomy: Type.Optional({ ...Autonomy, default: 'Semi' }),
    actions: Type.Optional(CustomActions),
    rules: Type.Optional(
      Type.Object(
        {
          deny: Type.Optional(actionsOf('Actions that agents under this policy may not perform.')),
          requireApproval: Type.Optional(actionsOf('Actions that need the decision of an approver.')),
          allow: Type.Optional(actionsOf('Actions of low or medium risk that need no approver.')),
        },
        { ...closed, description: 'Rules by action type. `deny` takes precedence over `allow`.' },
      ),
    ),
    tools: Type.Optional(
      Type.Object(
        {
          allow: Type.Optional(
            patternsOf('Patterns for the names of the tools that agents may call at any access level, if granted.'),
          ),
          deny: Type.Optional(
            patternsOf('Patterns for the names of the tools that agents under this policy may not call.'),
          ),
        },
        { ...closed, description: 'Rules by tool name. `deny` takes precedence over `allow`.' },
      ),
    ),
    models: Type.Optional(
      Type.Object(
        {
          allow: Type.Optional(
            patternsOf(
              'Patterns for the names of the models that agents may use. When absent, agents may use all configured models.',
            ),
          ),
          judge: Type.Optional({
            ...ModelName,
            description: 'The model that judges forged tools. When absent, no forged tool is accepted.',
          }),
          judgeMayBeAuthor: Type.Optional(
            Type.Boolean({
              default: false,
              description:
                'Whether the judge may be the model that forged the tool. For installations with a single model. The evidence of each tool records it.',
            }),
          ),
          reviewers: Type.Optional(
            Type.Array(ModelName, {
              minItems: 2,
              maxItems: 2,
              'x-kubernetes-list-type': 'atomic',
              description:
                'The two models of the review panel: safety first, correctness second. When absent, no tool is promoted.',
            }),
          ),
          testers: Type.Optional(
            Type.Array(ModelName, {
              minItems: 2,
              maxItems: 2,
              'x-kubernetes-list-type': 'atomic',
              description:
                'Two models that write test cases for a tool before its promotion, without seeing its code. Neither may be the model that forged it. When absent, no such cases are written.',
            }),
          ),
        },
        { ...closed, description: 'The models that agents, the judge and the panel use.' },
      ),
    ),
    forge: Type.Optional(Forge),
    promotion: Type.Optional(Promotion),
    children: Type.Optional(ChildLimits),
    schedules: Type.Optional(ScheduleLimits),
    egress: Type.Optional(
      Type.Object(
        {
          allow: Type.Optional({
            ...patternsOf(
              'Patterns for the hosts that `grants.network` of an Agent may contain. Private addresses are always denied.',
            ),
            default: [],
          }),
        },
        { ...closed, description: 'The limit for `grants.network` of all agents.' },
      ),
    ),
    quotas: Type.Optional(Quotas),
    approvals: Type.Optional(
      Type.Object(
        {
          timeout: Type.Optional({
            ...Duration,
            description: 'How long an ApprovalRequest stays pending. When absent, it does not expire.',
          }),
          onTimeout: Type.Optional(
            Type.Enum(['Wait', 'Deny'], {
              default: 'Wait',
              description: 'What happens after the timeout: the request stays pending, or is denied.',
            }),
          ),
          byRisk: Type.Optional(
            Type.Array(RiskApprovals, {
              maxItems: 4,
              'x-kubernetes-list-type': 'map',
              'x-kubernetes-list-map-keys': ['risk'],
              description: 'Other settings for calls of this risk. Promotions have those of all requests.',
            }),
          ),
          escalation: Type.Optional(
            Type.Array(EscalationStep, {
              maxItems: 8,
              'x-kubernetes-list-type': 'atomic',
              description:
                'Who else is asked while a request stays pending, in the order of the times. A step gives no right: the admission policies decide who may approve.',
            }),
          ),
        },
        { ...closed, description: 'Settings for ApprovalRequests.' },
      ),
    ),
    tainted: Type.Optional(Tainted),
    privateData: Type.Optional(PrivateData),
    outputScan: Type.Optional(OutputScan),
    maxPriority: Type.Optional({
      ...Priority,
      description: 'The highest `priority` that an agent may have.',
    }),
    suspend: Type.Optional(
      Type.Boolean({ default: false, description: 'The kill switch: stops all agents under this policy.' }),
    ),
  },
  closed,
);
export type TrustPolicySpec = Static<typeof TrustPolicySpec>;

const Spend = Type.Object(
  {
    window: Type.Enum(['hour', 'day', 'month'], {
      description: 'The kind of window: the current clock hour, day or month, in UTC.',
    }),
    start: Type.String({
      format: 'date-time',
      maxLength: 64,
      description: 'The start of the window, in RFC 3339 format.',
    }),
    inputTokens: count(0, 1e15, 'Input tokens of model calls.'),
    outputTokens: count(0, 1e15, 'Output tokens of model calls.'),
    cost: { ...Decimal, maxLength: 24, description: 'Model cost, as a string.' },
    toolCalls: count(0, 1e15, 'Number of tool calls.'),
    networkBytes: count(0, 1e15, 'Network bytes.'),
  },
  closed,
);
export type Spend = Static<typeof Spend>;

export const TrustPolicyStatus = Type.Object(
  {
    observedGeneration: Type.Optional(ObservedGeneration),
    agents: Type.Optional(count(0, 100_000, 'Number of agents under this policy.')),
    spend: Type.Optional(
      Type.Array(Spend, {
        maxItems: 3,
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['window'],
        description:
          'What all agents under the policy used, updated once a minute. A ledger that lost its data is restored from this field.',
      }),
    ),
    conditions: Type.Optional(Conditions),
  },
  closed,
);
export type TrustPolicyStatus = Static<typeof TrustPolicyStatus>;

export type TrustPolicy = Resource<'TrustPolicy', TrustPolicySpec, TrustPolicyStatus>;
