import { Type, type Static } from 'typebox';
import {
  Bytes,
  Conditions,
  Cpu,
  Decimal,
  Duration,
  LevelName,
  ModelName,
  Patterns,
  Percent,
  ToolApi,
} from './common.ts';
import type { Resource } from './common.ts';

const closed = { additionalProperties: false } as const;

const ActionPatterns = Type.Array(Type.String({ minLength: 1, maxLength: 128 }), {
  maxItems: 100,
  'x-kubernetes-list-type': 'atomic',
  description: 'Action types as `category:action`, or `category` for all of them.',
});

/** The six dimensions an access level limits. */
export const SubConstraints = Type.Object(
  {
    files: Type.Optional(Type.Enum(['Workspace', 'Project', 'Full'])),
    network: Type.Optional(Type.Enum(['None', 'Allowlist', 'Open'])),
    git: Type.Optional(Type.Enum(['LocalOnly', 'ReadAndBranch', 'Full'])),
    code: Type.Optional(Type.Enum(['Isolated', 'Direct'])),
    terminal: Type.Optional(Type.Enum(['None', 'RestrictedCommands', 'Full'])),
    requireApproval: Type.Optional(ActionPatterns),
  },
  closed,
);
export type SubConstraints = Static<typeof SubConstraints>;

const CustomLevel = Type.Object(
  {
    name: LevelName,
    base: Type.Enum(['sandboxed', 'restricted', 'standard', 'elevated'], {
      description: 'The built-in level it ranks with and may not exceed.',
    }),
    categories: Type.Array(Type.String({ maxLength: 64 }), { maxItems: 20, 'x-kubernetes-list-type': 'set' }),
    constraints: SubConstraints,
  },
  closed,
);

export const TrustPolicySpec = Type.Object(
  {
    description: Type.Optional(Type.String({ maxLength: 1024 })),
    level: Type.Optional(Type.Object({ initial: Type.Optional(LevelName), ceiling: Type.Optional(LevelName) }, closed)),
    levels: Type.Optional(
      Type.Array(CustomLevel, { maxItems: 8, 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['name'] }),
    ),
    constraints: Type.Optional(SubConstraints),
    strategy: Type.Optional(
      Type.Object(
        {
          type: Type.Enum(['Disabled', 'Weighted', 'PerCategory', 'Milestone']),
          milestone: Type.Optional(
            Type.Object(
              {
                minTasks: Type.Optional(Type.Integer({ minimum: 1 })),
                minQuality: Type.Optional(Type.Integer({ minimum: 0, maximum: 10 })),
                activeFor: Type.Optional(Duration),
                cleanFor: Type.Optional(Duration),
              },
              closed,
            ),
          ),
        },
        closed,
      ),
    ),
    decay: Type.Optional(
      Type.Object(
        {
          idle: Type.Optional(Duration),
          maxErrorPercent: Type.Optional(Percent),
          reverifyEvery: Type.Optional(Duration),
          minQuality: Type.Optional(Type.Integer({ minimum: 0, maximum: 10 })),
        },
        closed,
      ),
    ),
    autonomy: Type.Optional(Type.Enum(['Full', 'Semi', 'Supervised', 'Locked'])),
    rules: Type.Optional(
      Type.Object(
        {
          deny: Type.Optional(ActionPatterns),
          requireApproval: Type.Optional(ActionPatterns),
          allow: Type.Optional(ActionPatterns),
        },
        closed,
      ),
    ),
    tools: Type.Optional(Type.Object({ allow: Type.Optional(Patterns), deny: Type.Optional(Patterns) }, closed)),
    models: Type.Optional(
      Type.Object(
        {
          allow: Type.Optional(Patterns),
          judge: Type.Optional(ModelName),
          reviewers: Type.Optional(
            Type.Array(ModelName, { minItems: 2, maxItems: 2, 'x-kubernetes-list-type': 'atomic' }),
          ),
        },
        closed,
      ),
    ),
    forge: Type.Optional(
      Type.Object(
        {
          apis: Type.Optional(Type.Array(ToolApi, { maxItems: 5, 'x-kubernetes-list-type': 'set' })),
          domains: Type.Optional(Patterns),
          limits: Type.Optional(
            Type.Object(
              {
                duration: Type.Optional(Duration),
                memory: Type.Optional(Bytes),
                sessionTools: Type.Optional(Type.Integer({ minimum: 0, maximum: 100 })),
                agentTools: Type.Optional(Type.Integer({ minimum: 0, maximum: 500 })),
                minTestCases: Type.Optional(Type.Integer({ minimum: 1, maximum: 50 })),
              },
              closed,
            ),
          ),
        },
        closed,
      ),
    ),
    promotion: Type.Optional(
      Type.Object(
        {
          toAgent: Type.Optional(
            Type.Object(
              {
                minSuccessfulUses: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000 })),
                minSuccessPercent: Type.Optional(Percent),
                minDistinctInputs: Type.Optional(Type.Integer({ minimum: 1, maximum: 50 })),
                minJudgeConfidencePercent: Type.Optional(Percent),
                confidenceBound: Type.Optional(Type.Enum(['Rate', 'Wilson'])),
                coolDown: Type.Optional(Duration),
                requireHuman: Type.Optional(Type.Boolean()),
              },
              closed,
            ),
          ),
          toShared: Type.Optional(
            Type.Object(
              {
                minAgents: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
                gitOps: Type.Optional(
                  Type.Object(
                    {
                      connection: Type.String({ maxLength: 63 }),
                      branch: Type.String({ maxLength: 255 }),
                      path: Type.String({ maxLength: 255 }),
                    },
                    closed,
                  ),
                ),
              },
              closed,
            ),
          ),
        },
        closed,
      ),
    ),
    egress: Type.Optional(Type.Object({ allow: Type.Optional(Patterns) }, closed)),
    quotas: Type.Optional(
      Type.Object(
        {
          agents: Type.Optional(Type.Integer({ minimum: 0 })),
          tokensPerHour: Type.Optional(Type.Integer({ minimum: 0 })),
          tokensPerDay: Type.Optional(Type.Integer({ minimum: 0 })),
          costPerDay: Type.Optional(Decimal),
          costPerMonth: Type.Optional(Decimal),
          cpu: Type.Optional(Cpu),
          memory: Type.Optional(Bytes),
        },
        closed,
      ),
    ),
    approvals: Type.Optional(
      Type.Object({ timeout: Type.Optional(Duration), onTimeout: Type.Optional(Type.Enum(['Wait', 'Deny'])) }, closed),
    ),
    tainted: Type.Optional(
      Type.Object(
        {
          deny: Type.Optional(
            Type.Array(Type.Enum(['forge', 'promote', 'message', 'network']), {
              maxItems: 4,
              'x-kubernetes-list-type': 'set',
            }),
          ),
          network: Type.Optional(Patterns),
        },
        closed,
      ),
    ),
    suspend: Type.Optional(Type.Boolean()),
  },
  closed,
);
export type TrustPolicySpec = Static<typeof TrustPolicySpec>;

export const TrustPolicyStatus = Type.Object(
  { observedGeneration: Type.Optional(Type.Integer({ minimum: 0 })), conditions: Type.Optional(Conditions) },
  closed,
);
export type TrustPolicyStatus = Static<typeof TrustPolicyStatus>;

export type TrustPolicy = Resource<'TrustPolicy', TrustPolicySpec, TrustPolicyStatus>;
