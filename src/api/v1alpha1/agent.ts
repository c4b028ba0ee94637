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
import type { Resource } from './common.ts';

const Grants = Type.Object(
  {
    tools: Type.Optional(patternsOf('Tools the agent may call, by name. Tools it forged itself need no grant.')),
    network: Type.Optional(patternsOf('Hosts the agent may reach, as `host`, `host:port` or `*.domain`.')),
    memory: Type.Optional(
      Type.Object(
        {
          read: Type.Optional(patternsOf('Memory keys the agent may read.')),
          write: Type.Optional(patternsOf('Memory keys the agent may write.')),
        },
        { ...closed, description: 'Long-term memory. `self.*` are the keys of the agent itself.' },
      ),
    ),
    messages: Type.Optional(patternsOf('Agents it may send messages to, by name.')),
    spawn: Type.Optional(patternsOf('Agents it may start as children, by the name of a template.')),
    shell: Type.Optional(patternsOf('Programs its terminal tools may start, by name.')),
    environment: Type.Optional(patternsOf('Environment variables its tools may read, by name.')),
  },
  { ...closed, description: 'What the agent may reach. Nothing is granted that is not listed.' },
);

const WorkspaceFiles = Type.Array(
  Type.Object(
    {
      path: Type.String({
        'x-temper-form': 'a folder name of letters, digits, dashes and underscores',
        pattern: '^[A-Za-z0-9][A-Za-z0-9_-]*$',
        maxLength: 63,
        description: 'The folder of the workspace they are in.',
      }),
      configMap: Type.Object(
        { name: ObjectName },
        { ...closed, description: 'Each key of this ConfigMap of the same namespace is a file.' },
      ),
    },
    closed,
  ),
  {
    maxItems: 8,
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['path'],
    description: 'Files that are there when a pod starts. They can be read and not changed. On a cluster only.',
  },
);

const Limits = Type.Object(
  {
    turns: Type.Optional(count(1, 1000, 'Model calls for one message.', 30)),
    steps: Type.Optional(count(1, 1000, 'Tool calls for one message.', 30)),
    toolTimeout: Type.Optional({ ...Duration, default: '60s', description: 'Time for one tool call, from 1ms to 1h.' }),
    outputCharacters: Type.Optional(count(1000, 1_000_000, 'Characters of one tool result the model sees.', 50_000)),
  },
  { ...closed, description: 'How much one message may take.' },
);

const Quotas = Type.Object(
  {
    tokensPerHour: Type.Optional(count(0, 1e12, 'Model tokens per clock hour, input and output.')),
    tokensPerDay: Type.Optional(count(0, 1e12, 'Model tokens per day, UTC.')),
    costPerHour: Type.Optional({ ...Decimal, description: 'Model cost per clock hour, as text: `"0.50"`.' }),
    costPerDay: Type.Optional({ ...Decimal, description: 'Model cost per day, UTC, as text: `"2.00"`.' }),
    costPerMonth: Type.Optional({ ...Decimal, description: 'Model cost per month, UTC, as text: `"40.00"`.' }),
    toolCallsPerMinute: Type.Optional(count(0, 1e6, 'Tool calls per clock minute.')),
    networkBytesPerHour: Type.Optional({ ...Bytes, description: 'Bytes over the network per clock hour: `100Mi`.' }),
  },
  { ...closed, description: 'What the agent may use. Absent: only the quotas of its policy count. 0 means none.' },
);

export const AgentSpec = Type.Object(
  {
    description: Type.Optional(Text(1024, 'What the agent is for, for people.')),
    trustPolicyRef: Type.Object(
      { name: ObjectName },
      { ...closed, description: 'The TrustPolicy of the same namespace that says what the agent may do at most.' },
    ),
    model: Type.Object(
      {
        primary: ModelName,
        fallbacks: Type.Optional(atomicListOf(ModelName, 8, 'Models tried in this order when the primary one fails.')),
        temperature: Type.Optional({
          ...Decimal,
          description: 'Sampling temperature as text, `"0"` to `"2"`. The default of the provider when absent.',
        }),
        maxOutputTokens: Type.Optional(
          count(1, 1_000_000, 'Tokens of one answer. The default of the model when absent.'),
        ),
      },
      { ...closed, description: 'The models the agent thinks with.' },
    ),
    prompt: Type.Object(
      { system: Text(65_536, 'The system prompt. Guidelines for stable work are added to it.') },
      { ...closed, description: 'What the agent is told about itself.' },
    ),
    invocation: Type.Optional(
      Type.Enum(['Tools', 'Code'], {
        default: 'Tools',
        description: 'How it calls tools: by tool calls of the model, or by code that calls them.',
      }),
    ),
    grants: Type.Optional(Grants),
    denyTools: Type.Optional(patternsOf('Tools the agent may not call whatever is granted.')),
    arguments: Type.Optional(
      atomicListOf(
        Type.Object(
          {
            tool: { ...Pattern, description: 'The tools this is about, by name.' },
            argument: Text(128, 'The argument. A call without it is refused.'),
            allow: patternsOf('The values allowed.'),
          },
          closed,
        ),
        50,
        'Arguments pinned for this agent.',
      ),
    ),
    autonomy: Type.Optional(Autonomy),
    forge: Type.Optional(
      Type.Object(
        {
          enabled: Type.Optional(Type.Boolean({ default: false, description: 'May the agent make tools?' })),
          modes: Type.Optional({
            ...setOf(ForgeMode, 2, 'How it may make them: of tools it has, or of JavaScript in the sandbox.'),
            default: ['Compose'],
          }),
          apis: Type.Optional({
            ...setOf(ToolApi, 5, 'Host functions its tools may ask for, within the ceiling of the policy.'),
            default: [],
          }),
          persistSource: Type.Optional(
            Type.Boolean({
              default: true,
              description: 'Keep the source in the EmergentTool. Without it a tool cannot be shared.',
            }),
          ),
        },
        { ...closed, description: 'Making tools.' },
      ),
    ),
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
              description: 'The sandbox class, of those the platform offers. Its first one when absent.',
            }),
          ),
          resources: Type.Optional(
            Type.Object(
              { cpu: Type.Optional(Cpu), memory: Type.Optional(Bytes) },
              { ...closed, description: 'Processor and memory of the sandbox container.' },
            ),
          ),
          workspace: Type.Optional(
            Type.Object(
              { size: Type.Optional(Bytes), files: Type.Optional(WorkspaceFiles) },
              { ...closed, description: 'The folder the agent works in. It goes with the pod.' },
            ),
          ),
        },
        { ...closed, description: 'Where tools run.' },
      ),
    ),
    idle: Type.Optional(
      Type.Object(
        {
          scaleToZeroAfter: Type.Optional({
            ...Duration,
            description:
              'Without a message for this long the pod is removed; the next message brings it back. Absent: never.',
          }),
        },
        { ...closed, description: 'What happens while nothing is asked.' },
      ),
    ),
    suspend: Type.Optional(
      Type.Boolean({ default: false, description: 'Stops the agent. Messages wait until it is cleared.' }),
    ),
  },
  closed,
);
export type AgentSpec = Static<typeof AgentSpec>;

export const AgentStatus = Type.Object(
  {
    observedGeneration: Type.Optional(ObservedGeneration),
    level: Type.Optional({ ...LevelName, description: 'The access level that counts now.' }),
    summary: Type.Optional(Text(256, 'Use of quotas in one line. Written every few minutes, never live.')),
    tools: Type.Optional(count(0, 10_000, 'Tools at tier Agent that are active.')),
    pod: Type.Optional(
      Type.Object(
        { name: ObjectName, uid: Uid, node: Type.Optional(Text(253, 'The node it runs on.')) },
        { ...closed, description: 'The pod that is this agent. Tokens of any other pod are refused.' },
      ),
    ),
    runtime: Type.Optional(Text(63, 'The sandbox class of the pod.')),
    egress: Type.Optional(Text(63, 'The egress profile of the pod.')),
    queue: Type.Optional(
      count(
        0,
        1e9,
        'Messages that wait. Written every few minutes; at once when it begins or ends for an agent without a pod.',
      ),
    ),
    conditions: Type.Optional(Conditions),
  },
  closed,
);
export type AgentStatus = Static<typeof AgentStatus>;

export type Agent = Resource<'Agent', AgentSpec, AgentStatus>;
