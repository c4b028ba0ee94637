import { Type, type Static } from 'typebox';
import { ACTION_CATEGORIES, ACTION_TYPES, BUILTIN_LEVELS, DEFAULT_LEVELS, TOOL_CATEGORIES } from './actions.ts';
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

const ActionEntry = Type.String({
  minLength: 1,
  maxLength: 64,
  description: 'A registered action type as `category:action`, or a category for all of its actions.',
  'x-temper-enum': [...ACTION_TYPES, ...ACTION_CATEGORIES],
});

const actionsOf = (description: string) => atomicListOf(ActionEntry, 100, description);

/** The six dimensions an access level limits. */
export const SubConstraints = Type.Object(
  {
    files: Type.Optional(
      Type.Enum(['Workspace', 'Project', 'Full'], {
        description: 'Files: the workspace, the project, or all there are.',
      }),
    ),
    network: Type.Optional(
      Type.Enum(['None', 'Allowlist', 'Open'], {
        description: 'Network: none, granted hosts, or all egress.allow permits.',
      }),
    ),
    git: Type.Optional(
      Type.Enum(['LocalOnly', 'ReadAndBranch', 'Full'], {
        description: 'Git: local only, read and branch, or push as well.',
      }),
    ),
    code: Type.Optional(Type.Enum(['Isolated', 'Direct'], { description: 'Code: in isolation, or directly.' })),
    terminal: Type.Optional(
      Type.Enum(['None', 'RestrictedCommands', 'Full'], {
        description: 'Terminal: none, the granted programs, or any program.',
      }),
    ),
    requireApproval: Type.Optional(actionsOf('Actions a person is asked about first.')),
  },
  closed,
);
export type SubConstraints = Static<typeof SubConstraints>;

const CustomLevel = Type.Object(
  {
    name: { ...LevelName, description: 'The name of the level. Built-in names are taken.' },
    base: Type.Enum([...BUILTIN_LEVELS], { description: 'The built-in level it ranks with and may not exceed.' }),
    categories: setOf(
      Type.Enum([...TOOL_CATEGORIES], { description: 'A tool category.' }),
      TOOL_CATEGORIES.length,
      'The tool categories it opens, of those its base opens.',
    ),
    constraints: Type.Required(SubConstraints, { ...closed, description: 'All six limits. None may be left out.' }),
  },
  closed,
);

const Strategy = Type.Object(
  {
    type: Type.Enum(['Disabled', 'Weighted', 'PerCategory', 'Milestone'], {
      description: 'How a higher level is earned. Disabled: only a person raises an agent.',
    }),
    milestone: Type.Optional(
      Type.Object(
        {
          minTasks: Type.Optional(count(1, 1_000_000, 'Tasks done.')),
          minQuality: Type.Optional(count(0, 10, 'Mean quality of the work, 0 to 10.')),
          activeFor: Type.Optional({ ...Duration, description: 'Time since the agent was made.' }),
          cleanFor: Type.Optional({ ...Duration, description: 'Time without any failure.' }),
        },
        { ...closed, description: 'What must be reached. Only for type `Milestone`.' },
      ),
    ),
  },
  { ...closed, description: 'How trust is earned. No strategy reaches elevated.' },
);

const Forge = Type.Object(
  {
    apis: Type.Optional({ ...setOf(ToolApi, 5, 'Host functions any forged tool may ask for.'), default: [] }),
    domains: Type.Optional({ ...patternsOf('Hosts `fetch` of a forged tool may reach.'), default: [] }),
    limits: Type.Optional(
      Type.Object(
        {
          duration: Type.Optional({ ...Duration, default: '5s', description: 'Time of one run, from 1ms to 30s.' }),
          memory: Type.Optional({ ...Bytes, default: '128Mi', description: 'Memory of one run, from 8Mi to 1Gi.' }),
          sessionTools: Type.Optional(count(0, 100, 'Forged tools of one session.', 10)),
          agentTools: Type.Optional(count(0, 500, 'Forged tools of one agent.', 50)),
          minTestCases: Type.Optional(count(1, 50, 'Test cases a request must bring.', 1)),
        },
        { ...closed, description: 'How large a forged tool may be.' },
      ),
    ),
  },
  { ...closed, description: 'Ceilings over what any forged tool may have.' },
);

const Promotion = Type.Object(
  {
    toAgent: Type.Optional(
      Type.Object(
        {
          minSuccessfulUses: Type.Optional(count(1, 10_000, 'Successful uses.', 5)),
          minSuccessPercent: Type.Optional(count(0, 100, 'Successful uses of all uses, whole percent.', 80)),
          minDistinctInputs: Type.Optional(count(1, 50, 'Different inputs among them.', 3)),
          minJudgeConfidencePercent: Type.Optional(count(0, 100, 'Least confidence of the judge, whole percent.', 80)),
          confidenceBound: Type.Optional(
            Type.Enum(['Rate', 'Wilson'], {
              default: 'Rate',
              description: 'What is compared with minSuccessPercent: the plain rate, or its Wilson 95 % lower bound.',
            }),
          ),
          coolDown: Type.Optional({
            ...Duration,
            default: '24h',
            description: 'Time until the next try after a refusal.',
          }),
          requireHuman: Type.Optional(
            Type.Boolean({ default: false, description: 'Ask a person as well. The panel is always asked.' }),
          ),
        },
        { ...closed, description: 'From tier Session to tier Agent.' },
      ),
    ),
    toShared: Type.Optional(
      Type.Object(
        {
          minAgents: Type.Optional(count(1, 100, 'Agents that used the tool with success.', 1)),
          gitOps: Type.Optional(
            Type.Object(
              {
                connection: Text(63, 'The connection of the gateway configuration that may open pull requests.'),
                branch: Text(255, 'The branch to merge into.'),
                path: Text(255, 'The folder of the repository the two files go to.'),
              },
              { ...closed, description: 'Ask by a pull request.' },
            ),
          ),
        },
        { ...closed, description: 'From tier Agent to tier Shared. The approval of a person is always required.' },
      ),
    ),
  },
  { ...closed, description: 'What a forged tool must show to reach further.' },
);

const Quotas = Type.Object(
  {
    agents: Type.Optional(count(0, 100_000, 'Agents under this policy.')),
    tokensPerHour: Type.Optional(count(0, 1e12, 'Model tokens per clock hour, all agents together.')),
    tokensPerDay: Type.Optional(count(0, 1e12, 'Model tokens per day, UTC, all agents together.')),
    costPerDay: Type.Optional({ ...Decimal, description: 'Model cost per day, UTC, as text: `"20.00"`.' }),
    costPerMonth: Type.Optional({ ...Decimal, description: 'Model cost per month, UTC, as text: `"300.00"`.' }),
    cpu: Type.Optional({ ...Cpu, description: 'Processors of all agent pods together: `"8"`.' }),
    memory: Type.Optional({ ...Bytes, description: 'Memory of all agent pods together: `16Gi`.' }),
  },
  { ...closed, description: 'What all agents under this policy may use together. Absent: no limit. 0 means none.' },
);

export const TrustPolicySpec = Type.Object(
  {
    description: Type.Optional(Text(1024, 'Whom the policy is for, for people.')),
    level: Type.Optional(
      Type.Object(
        {
          initial: Type.Optional({
            ...LevelName,
            default: DEFAULT_LEVELS.initial,
            description: 'The level a new agent has. Never elevated, nor a level based on it.',
          }),
          ceiling: Type.Optional({
            ...LevelName,
            default: DEFAULT_LEVELS.ceiling,
            description: 'The level no agent goes beyond. With an automatic strategy not elevated.',
          }),
        },
        { ...closed, description: 'Access levels: sandboxed < restricted < standard < elevated, and custom ones.' },
      ),
    ),
    levels: Type.Optional(
      Type.Array(CustomLevel, {
        maxItems: 8,
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['name'],
        description: 'Levels of your own.',
      }),
    ),
    constraints: Type.Optional({
      ...SubConstraints,
      description: 'Limits laid over those of any level. Only the fields given count, and only where they are tighter.',
    }),
    strategy: Type.Optional(Strategy),
    decay: Type.Optional(
      Type.Object(
        {
          idle: Type.Optional({ ...Duration, description: 'Without any activity for this long: one level down.' }),
          maxErrorPercent: Type.Optional(
            count(
              0,
              100,
              'More failures than this, whole percent: an agent goes one level down, a tool is taken out.',
              15,
            ),
          ),
          reverifyEvery: Type.Optional({
            ...Duration,
            description: 'How often the quality of work is looked at again.',
          }),
          minQuality: Type.Optional(count(0, 10, 'Lower quality than this at that time: one level down.')),
        },
        { ...closed, description: 'How trust is lost. It needs no approval, and beats a promotion.' },
      ),
    ),
    autonomy: Type.Optional({ ...Autonomy, default: 'Semi' }),
    rules: Type.Optional(
      Type.Object(
        {
          deny: Type.Optional(actionsOf('Actions nobody under this policy may do.')),
          requireApproval: Type.Optional(actionsOf('Actions a person is asked about first.')),
          allow: Type.Optional(actionsOf('Actions of low or medium risk that need no person.')),
        },
        { ...closed, description: 'Rules by action type. What is denied stays denied.' },
      ),
    ),
    tools: Type.Optional(
      Type.Object(
        {
          allow: Type.Optional(patternsOf('Tools that may be called at any level, where granted.')),
          deny: Type.Optional(patternsOf('Tools nobody under this policy may call.')),
        },
        { ...closed, description: 'Rules by tool name. What is denied stays denied.' },
      ),
    ),
    models: Type.Optional(
      Type.Object(
        {
          allow: Type.Optional(patternsOf('Models agents may use. Absent: all that are configured.')),
          judge: Type.Optional({
            ...ModelName,
            description: 'The model that judges forged tools. Without one none is accepted.',
          }),
          reviewers: Type.Optional(
            Type.Array(ModelName, {
              minItems: 2,
              maxItems: 2,
              'x-kubernetes-list-type': 'atomic',
              description: 'The two models of the panel: safety, then correctness. Without them nothing is promoted.',
            }),
          ),
        },
        { ...closed, description: 'Models.' },
      ),
    ),
    forge: Type.Optional(Forge),
    promotion: Type.Optional(Promotion),
    egress: Type.Optional(
      Type.Object(
        {
          allow: Type.Optional({ ...patternsOf('Hosts agents may be granted. Private addresses never.'), default: [] }),
        },
        { ...closed, description: 'The ceiling over `grants.network`.' },
      ),
    ),
    quotas: Type.Optional(Quotas),
    approvals: Type.Optional(
      Type.Object(
        {
          timeout: Type.Optional({ ...Duration, description: 'How long a question waits. Absent: for ever.' }),
          onTimeout: Type.Optional(
            Type.Enum(['Wait', 'Deny'], { default: 'Wait', description: 'What silence means. It never means yes.' }),
          ),
        },
        { ...closed, description: 'Questions to people.' },
      ),
    ),
    tainted: Type.Optional(
      Type.Object(
        {
          deny: Type.Optional({
            ...setOf(
              Type.Enum(['forge', 'promote', 'message', 'network'], { description: 'What is taken away.' }),
              4,
              'What a session with untrusted content may not do.',
            ),
            default: ['forge', 'promote'],
          }),
          network: Type.Optional(patternsOf('The hosts such a session may still reach. Absent: as granted.')),
        },
        { ...closed, description: 'Sessions that hold content of strangers.' },
      ),
    ),
    suspend: Type.Optional(
      Type.Boolean({ default: false, description: 'The kill switch: stops every agent under this policy.' }),
    ),
  },
  closed,
);
export type TrustPolicySpec = Static<typeof TrustPolicySpec>;

const Spend = Type.Object(
  {
    window: Type.Enum(['hour', 'day', 'month'], { description: 'The current window of UTC.' }),
    start: Type.String({ format: 'date-time', maxLength: 64, description: 'When the window began, RFC 3339.' }),
    inputTokens: count(0, 1e15, 'Tokens given to models.'),
    outputTokens: count(0, 1e15, 'Tokens models gave.'),
    cost: { ...Decimal, maxLength: 24, description: 'Model cost, as text.' },
    toolCalls: count(0, 1e15, 'Tool calls.'),
    networkBytes: count(0, 1e15, 'Bytes over the network.'),
  },
  closed,
);
export type Spend = Static<typeof Spend>;

export const TrustPolicyStatus = Type.Object(
  {
    observedGeneration: Type.Optional(ObservedGeneration),
    agents: Type.Optional(count(0, 100_000, 'Agents under this policy.')),
    spend: Type.Optional(
      Type.Array(Spend, {
        maxItems: 3,
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['window'],
        description: 'What all agents under it used, written once a minute. An empty ledger begins with it.',
      }),
    ),
    conditions: Type.Optional(Conditions),
  },
  closed,
);
export type TrustPolicyStatus = Static<typeof TrustPolicyStatus>;

export type TrustPolicy = Resource<'TrustPolicy', TrustPolicySpec, TrustPolicyStatus>;
