import { Type, type Static } from 'typebox';
import {
  Autonomy,
  Bytes,
  Conditions,
  Cpu,
  Decimal,
  Duration,
  ForgeMode,
  LevelName,
  ModelName,
  ObjectName,
  ObservedGeneration,
  Pattern,
  Text,
  ToolApi,
  Uid,
  atomicListOf,
  closed,
  count,
  patternsOf,
  setOf,
} from './common.ts';
import { DEFAULT_CONCURRENCY, MAX_CONCURRENCY } from '../limits/concurrency.ts';
import { DEFAULT_OUTPUT_TOKENS } from '../limits/output-tokens.ts';
import type { Resource } from './common.ts';
import { A2aSettings } from './agent/a2a.ts';
import { Disclosure } from './agent/disclosure.ts';
import { Hooks } from './agent/hooks.ts';
import { Prompt } from './agent/prompt.ts';
import { Priority } from './agent/priority.ts';
import { AGENT_MODES, TOOL_PROFILE_NAMES } from './agent/tool-profiles.ts';
import { ToolSettings } from './agent/tool-settings.ts';
import { AgentSchedule } from './schedule/spec.ts';
import { ScheduleStatus } from './schedule/status.ts';
import { TriggerStatuses } from './schedule/trigger-status.ts';
import { SubConstraints } from './trust/constraints.ts';
import { DeactivatedTools } from './trust/deactivated-tools.ts';
import { TrustStatus } from './trust/status.ts';
import { ToolsUsedTogetherList } from './trust/tools-used-together.ts';

const Grants = Type.Object(
  {
    tools: Type.Optional(
      patternsOf(
        'Patterns for the names of the tools that the agent may call. Tools that the agent forged itself need no grant.',
      ),
    ),
    network: Type.Optional(
      patternsOf('Patterns for the hosts that the agent may connect to, as `host`, `host:port` or `*.domain`.'),
    ),
    memory: Type.Optional(
      Type.Object(
        {
          read: Type.Optional(patternsOf('Patterns for the memory keys that the agent may read.')),
          write: Type.Optional(patternsOf('Patterns for the memory keys that the agent may write.')),
        },
        {
          ...closed,
          description:
            'Access to long-term memory. Keys below `shared` belong to all agents of the namespace, all others to this agent.',
        },
      ),
    ),
    messages: Type.Optional(patternsOf('Patterns for the names of the agents that the agent may send messages to.')),
    spawn: Type.Optional(
      patternsOf('Patterns for the names of the templates from which the agent may start child agents.'),
    ),
    kill: Type.Optional(
      patternsOf(
        'Patterns for the names of child agents of other agents that the agent may end. Its own children need no grant.',
      ),
    ),
    schedules: Type.Optional(
      count(0, 50, 'How many schedules the agent may make for itself with `schedule_create`.', 0),
    ),
    events: Type.Optional(
      Type.Object(
        {
          publish: Type.Optional(
            patternsOf('Patterns for the subjects under which the agent may publish events, as NATS subjects.'),
          ),
          subscribe: Type.Optional(
            patternsOf(
              'Patterns for the subjects whose events the agent may subscribe to. `schedule.triggers` need no grant.',
            ),
          ),
        },
        { ...closed, description: 'Events of the namespace: `*` stands for one token, a `>` at the end for the rest.' },
      ),
    ),
    shell: Type.Optional(
      patternsOf(
        'Patterns for the command lines that `shell_exec` may run: the name of a program and its arguments, such as `rg *`. A program that runs can start only programs that this list names. See docs/reference/toolbox.md.',
      ),
    ),
    environment: Type.Optional(
      patternsOf(
        'Patterns for the names of the environment variables that programs of `shell_exec` get. Names of secrets, and names that choose what a program loads, are never given.',
      ),
    ),
  },
  { ...closed, description: 'What the agent may access. Everything that is not listed is denied.' },
);

const WorkspaceFiles = Type.Array(
  Type.Object(
    {
      path: Type.String({
        'x-temper-form': 'a folder name of letters, digits, dashes and underscores',
        pattern: '^[A-Za-z0-9][A-Za-z0-9_-]*$',
        maxLength: 63,
        description: 'The folder of the workspace where the files are mounted.',
      }),
      configMap: Type.Object(
        { name: ObjectName },
        { ...closed, description: 'A ConfigMap in the same namespace. Each key becomes a file.' },
      ),
    },
    closed,
  ),
  {
    maxItems: 8,
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['path'],
    description: 'Files from ConfigMaps, mounted read-only in the workspace.',
  },
);

const Limits = Type.Object(
  {
    turns: Type.Optional(count(1, 1000, 'Maximum number of model calls per message.', 30)),
    steps: Type.Optional(count(1, 1000, 'Maximum number of tool calls per message.', 30)),
    toolTimeout: Type.Optional({
      ...Duration,
      default: '60s',
      description: 'Timeout of one tool call, from 1ms to 1h.',
    }),
    concurrency: Type.Optional(
      count(
        1,
        MAX_CONCURRENCY,
        'Maximum number of sessions whose messages the agent handles at the same time. The messages of one session are always handled one after another.',
        DEFAULT_CONCURRENCY,
      ),
    ),
    outputCharacters: Type.Optional(
      count(1000, 1_000_000, 'Maximum number of characters of one tool result that the model receives.', 50_000),
    ),
  },
  { ...closed, description: 'Limits for the handling of messages.' },
);

const Quotas = Type.Object(
  {
    tokensPerHour: Type.Optional(count(0, 1e12, 'Model tokens per clock hour (UTC), input and output together.')),
    tokensPerDay: Type.Optional(count(0, 1e12, 'Model tokens per day (UTC), input and output together.')),
    costPerHour: Type.Optional({ ...Decimal, description: 'Model cost per clock hour (UTC), as a string: `"0.50"`.' }),
    costPerDay: Type.Optional({ ...Decimal, description: 'Model cost per day (UTC), as a string: `"2.00"`.' }),
    costPerMonth: Type.Optional({ ...Decimal, description: 'Model cost per month (UTC), as a string: `"40.00"`.' }),
    toolCallsPerMinute: Type.Optional(count(0, 1e6, 'Tool calls per clock minute (UTC).')),
    networkBytesPerHour: Type.Optional({ ...Bytes, description: 'Network bytes per clock hour (UTC): `100Mi`.' }),
  },
  {
    ...closed,
    description:
      'How much the agent may use. When a quota is absent, only the quotas of the TrustPolicy apply. 0 allows no use.',
  },
);

export const AgentSpec = Type.Object(
  {
    description: Type.Optional(Text(1024, 'A description of the purpose of the agent, for human readers.')),
    trustPolicyRef: Type.Object(
      { name: ObjectName },
      { ...closed, description: 'The TrustPolicy in the same namespace that limits the agent.' },
    ),
    model: Type.Object(
      {
        primary: ModelName,
        agent: Type.Optional({
          ...ObjectName,
          description:
            'The agent program that works on the messages in place of the loop of Temper. It speaks the Agent Client Protocol, calls these models, and has the tools of the agent. `temper run` finds it in the configuration of the user, a cluster in that of the platform.',
        }),
        fallbacks: Type.Optional(
          atomicListOf(ModelName, 8, 'Models to try, in this order, when the primary model fails.'),
        ),
        routing: Type.Optional(
          Type.Object(
            {
              simple: Type.Optional({ ...ModelName, description: 'The model of messages with less than 100 points.' }),
              medium: Type.Optional({ ...ModelName, description: 'The model of messages with 100 to 499 points.' }),
              complex: Type.Optional({ ...ModelName, description: 'The model of messages with 500 points or more.' }),
            },
            {
              ...closed,
              description:
                'Models by the complexity of a message, in points for its length, the offered tools, code and the conversation. A complexity without a model, or with one that the TrustPolicy does not allow, has the primary model.',
            },
          ),
        ),
        temperature: Type.Optional({
          ...Decimal,
          description: 'Sampling temperature as a string, from `"0"` to `"2"`. Defaults to the provider\'s default.',
        }),
        maxOutputTokens: Type.Optional(
          count(
            1,
            1_000_000,
            `Maximum number of output tokens of one model response. Defaults to ${DEFAULT_OUTPUT_TOKENS.toLocaleString('en-US')}.`,
          ),
        ),
      },
      { ...closed, description: 'The models that the agent uses.' },
    ),
    prompt: Prompt,
    invocation: Type.Optional(
      Type.Enum(['Tools', 'Code'], {
        default: 'Tools',
        description:
          'How the agent calls tools: `Tools` uses tool calls of the model; with `Code` the model has one tool, `invoke`, and writes JavaScript that calls the tools of the agent.',
      }),
    ),
    disclosure: Type.Optional(Disclosure),
    grants: Type.Optional(Grants),
    denyTools: Type.Optional(
      patternsOf('Patterns for the names of the tools that the agent may not call, even if they are granted.'),
    ),
    toolProfile: Type.Optional(
      Type.Enum([...TOOL_PROFILE_NAMES], {
        description:
          'A named selection of tools. The agent may call a tool only when `grants.tools` and the profile both name it. Tools that the agent forged itself need no entry. When absent, `grants.tools` alone decides.',
      }),
    ),
    mode: Type.Optional(
      Type.Enum([...AGENT_MODES], {
        default: 'Full',
        description:
          'What the agent may do at all: `Observe` calls no tool, `Assist` calls six tools that only read, `Full` calls every tool that the grants allow.',
      }),
    ),
    arguments: Type.Optional(
      atomicListOf(
        Type.Object(
          {
            tool: { ...Pattern, description: 'Pattern for the names of the tools that this entry applies to.' },
            argument: Text(128, 'The name of the argument. A call without this argument is denied.'),
            allow: patternsOf('Patterns for the allowed values.'),
          },
          closed,
        ),
        50,
        'Tool arguments that are restricted to allowed values.',
      ),
    ),
    toolSettings: Type.Optional(ToolSettings),
    autonomy: Type.Optional(Autonomy),
    constraints: Type.Optional({
      ...SubConstraints,
      description:
        'Limits of this agent beside those of its level and its TrustPolicy. A field may only be stricter than what the TrustPolicy gives; a field that is not set changes nothing.',
    }),
    children: Type.Optional(
      Type.Object(
        {
          inherit: Type.Optional(
            Type.Boolean({
              default: false,
              description:
                'Whether the agent may start child agents with a manifest of its own. Such a child has no more permissions than its parent.',
            }),
          ),
          template: Type.Optional(
            Type.Boolean({
              default: false,
              description:
                'Whether agents whose `grants.spawn` names this agent may start copies of it. A copy has the permissions of this agent, whatever those of its parent are.',
            }),
          ),
        },
        { ...closed, description: 'Child agents, which the operator creates for an agent and deletes with it.' },
      ),
    ),
    forge: Type.Optional(
      Type.Object(
        {
          enabled: Type.Optional(Type.Boolean({ default: false, description: 'Whether the agent may forge tools.' })),
          modes: Type.Optional({
            ...setOf(
              ForgeMode,
              2,
              'How the agent may forge tools: `Compose` from existing tools, `Sandbox` from JavaScript that runs in the sandbox.',
            ),
            default: ['Compose'],
          }),
          apis: Type.Optional({
            ...setOf(ToolApi, 5, 'Host functions that forged tools may use, within the limits of the TrustPolicy.'),
            default: [],
          }),
          persistSource: Type.Optional(
            Type.Boolean({
              default: true,
              description:
                'Whether the source code of forged tools is stored with them. With `false` it is in one encrypted store only, and the tools cannot be shared.',
            }),
          ),
        },
        { ...closed, description: 'Whether and how the agent forges tools.' },
      ),
    ),
    returns: Type.Optional(
      Text(
        32_768,
        'A JSON Schema, as JSON text, of an object that every answer of the agent must be. The model gives it with the tool `finish`, or as the text of its answer.',
      ),
    ),
    hooks: Type.Optional(Hooks),
    a2a: Type.Optional(A2aSettings),
    limits: Type.Optional(Limits),
    quotas: Type.Optional(Quotas),
    sandbox: Type.Optional(
      Type.Object(
        {
          class: Type.Optional(
            Type.String({
              'x-temper-form': 'a name of lower-case letters, digits and dashes',
              pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$',
              maxLength: 63,
              description:
                "The sandbox class, one of those in the operator's configuration. Defaults to the first one.",
            }),
          ),
          resources: Type.Optional(
            Type.Object(
              { cpu: Type.Optional(Cpu), memory: Type.Optional(Bytes) },
              { ...closed, description: 'CPU and memory of the sandbox container.' },
            ),
          ),
          workspace: Type.Optional(
            Type.Object(
              { size: Type.Optional(Bytes), files: Type.Optional(WorkspaceFiles) },
              { ...closed, description: 'The working directory of the agent. It is deleted with the pod.' },
            ),
          ),
        },
        { ...closed, description: 'The sandbox in which tools run.' },
      ),
    ),
    idle: Type.Optional(
      Type.Object(
        {
          scaleToZeroAfter: Type.Optional({
            ...Duration,
            description:
              'Deletes the pod when the agent receives no message for this long. The next message starts a new pod. Absent: the pod keeps running.',
          }),
          closeSessionsAfter: Type.Optional({
            ...Duration,
            default: '720h',
            description:
              'Closes a session that was not used for this long, from 1h to 4320h: its history and its tools are deleted. A later message opens a new one.',
          }),
        },
        { ...closed, description: 'Behaviour while the agent has no messages.' },
      ),
    ),
    schedule: Type.Optional(AgentSchedule),
    priority: Type.Optional({
      ...Priority,
      description:
        'Whose work starts first when work waits: that of agents with a higher priority, and no work waits forever. At most `maxPriority` of the TrustPolicy. See docs/reference/priority.md.',
    }),
    suspend: Type.Optional(
      Type.Boolean({
        default: false,
        description: 'Stops the agent. New messages wait in its inbox until this is `false` again.',
      }),
    ),
  },
  closed,
);
export type AgentSpec = Static<typeof AgentSpec>;

export const AgentStatus = Type.Object(
  {
    observedGeneration: Type.Optional(ObservedGeneration),
    level: Type.Optional({ ...LevelName, description: 'The current access level.' }),
    trust: Type.Optional(TrustStatus),
    deactivatedTools: Type.Optional(DeactivatedTools),
    toolsUsedTogether: Type.Optional(ToolsUsedTogetherList),
    summary: Type.Optional(
      Text(
        256,
        'Usage in one line: the quota with the highest usage, or the tokens of the day (UTC) for an agent without quotas. Absent until the first use. Updated every few minutes.',
      ),
    ),
    pod: Type.Optional(
      Type.Object(
        { name: ObjectName, uid: Uid, node: Type.Optional(Text(253, 'The node that the pod runs on.')) },
        {
          ...closed,
          description:
            'The pod of this agent, first written when it is ready, after five seconds, or at once with a fault. The gateway rejects tokens of all other pods.',
        },
      ),
    ),
    runtime: Type.Optional(Text(63, 'The sandbox class of the pod.')),
    queue: Type.Optional(
      count(
        0,
        1e9,
        'Number of messages that wait for the agent. Updated every few minutes; for an agent without a pod, updated at once when messages start or stop waiting.',
      ),
    ),
    schedule: Type.Optional(ScheduleStatus),
    triggers: Type.Optional(TriggerStatuses),
    ownSchedules: Type.Optional(
      count(0, 50, 'Number of schedules that the agent made itself. Absent when it made none.'),
    ),
    conditions: Type.Optional(Conditions),
  },
  closed,
);
export type AgentStatus = Static<typeof AgentStatus>;

export type Agent = Resource<'Agent', AgentSpec, AgentStatus>;
