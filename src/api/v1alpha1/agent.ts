import { Type, type Static } from 'typebox';
import {
  Conditions,
  Decimal,
  Duration,
  ForgeMode,
  ModelName,
  ObjectName,
  Pattern,
  Patterns,
  Bytes,
  Cpu,
  ToolApi,
} from './common.ts';
import type { Resource } from './common.ts';

const closed = { additionalProperties: false } as const;

export const AgentSpec = Type.Object(
  {
    description: Type.Optional(Type.String({ maxLength: 1024 })),
    trustPolicyRef: Type.Object({ name: ObjectName }, closed),
    model: Type.Object(
      {
        primary: ModelName,
        fallbacks: Type.Optional(Type.Array(ModelName, { maxItems: 8, 'x-kubernetes-list-type': 'atomic' })),
        temperature: Type.Optional(Decimal),
        maxOutputTokens: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
      },
      closed,
    ),
    prompt: Type.Object({ system: Type.String({ minLength: 1, maxLength: 65_536 }) }, closed),
    invocation: Type.Optional(Type.Enum(['Tools', 'Code'])),
    grants: Type.Optional(
      Type.Object(
        {
          tools: Type.Optional(Patterns),
          network: Type.Optional(Patterns),
          memory: Type.Optional(Type.Object({ read: Type.Optional(Patterns), write: Type.Optional(Patterns) }, closed)),
          messages: Type.Optional(Patterns),
          spawn: Type.Optional(Patterns),
          shell: Type.Optional(Patterns),
          environment: Type.Optional(Patterns),
        },
        closed,
      ),
    ),
    denyTools: Type.Optional(Patterns),
    arguments: Type.Optional(
      Type.Array(
        Type.Object(
          { tool: Pattern, argument: Type.String({ minLength: 1, maxLength: 128 }), allow: Patterns },
          closed,
        ),
        {
          maxItems: 50,
          'x-kubernetes-list-type': 'atomic',
          description: 'Arguments pinned for this agent, by pattern.',
        },
      ),
    ),
    autonomy: Type.Optional(Type.Enum(['Full', 'Semi', 'Supervised', 'Locked'])),
    forge: Type.Optional(
      Type.Object(
        {
          enabled: Type.Optional(Type.Boolean()),
          modes: Type.Optional(Type.Array(ForgeMode, { maxItems: 2, 'x-kubernetes-list-type': 'set' })),
          apis: Type.Optional(Type.Array(ToolApi, { maxItems: 5, 'x-kubernetes-list-type': 'set' })),
          persistSource: Type.Optional(Type.Boolean()),
        },
        closed,
      ),
    ),
    limits: Type.Optional(
      Type.Object(
        {
          turns: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })),
          steps: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })),
          toolTimeout: Type.Optional(Duration),
          outputCharacters: Type.Optional(Type.Integer({ minimum: 1000, maximum: 1_000_000 })),
        },
        closed,
      ),
    ),
    quotas: Type.Optional(
      Type.Object(
        {
          tokensPerHour: Type.Optional(Type.Integer({ minimum: 0 })),
          tokensPerDay: Type.Optional(Type.Integer({ minimum: 0 })),
          costPerHour: Type.Optional(Decimal),
          costPerDay: Type.Optional(Decimal),
          costPerMonth: Type.Optional(Decimal),
          toolCallsPerMinute: Type.Optional(Type.Integer({ minimum: 0 })),
          networkBytesPerHour: Type.Optional(Bytes),
        },
        closed,
      ),
    ),
    sandbox: Type.Optional(
      Type.Object(
        {
          resources: Type.Optional(Type.Object({ cpu: Type.Optional(Cpu), memory: Type.Optional(Bytes) }, closed)),
          workspace: Type.Optional(Type.Object({ size: Type.Optional(Bytes) }, closed)),
        },
        closed,
      ),
    ),
    idle: Type.Optional(Type.Object({ scaleToZeroAfter: Type.Optional(Duration) }, closed)),
    suspend: Type.Optional(Type.Boolean()),
  },
  closed,
);
export type AgentSpec = Static<typeof AgentSpec>;

export const AgentStatus = Type.Object(
  {
    observedGeneration: Type.Optional(Type.Integer({ minimum: 0 })),
    level: Type.Optional(Type.String({ maxLength: 63 })),
    summary: Type.Optional(Type.String({ maxLength: 256 })),
    conditions: Type.Optional(Conditions),
  },
  closed,
);
export type AgentStatus = Static<typeof AgentStatus>;

export type Agent = Resource<'Agent', AgentSpec, AgentStatus>;
