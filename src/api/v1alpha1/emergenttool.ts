import { Type, type Static } from 'typebox';
import { Conditions, Duration, ForgeMode, Bytes, ToolApi, ToolName } from './common.ts';
import type { Resource } from './common.ts';

const closed = { additionalProperties: false } as const;

const JsonText = (maxLength: number, description: string) => Type.String({ minLength: 1, maxLength, description });

/** One step of a composed tool. `tool` is a built-in name, or `name@sha256:…` of a forged one. */
export const ComposeStep = Type.Object(
  {
    name: Type.String({ pattern: '^[A-Za-z][A-Za-z0-9_-]{0,62}$' }),
    tool: Type.String({ pattern: '^[a-z][a-z0-9_-]{0,62}(@sha256:[0-9a-f]{64})?$' }),
    inputMapping: JsonText(16_384, 'JSON text: the arguments, with `$input`, `$prev` and `$steps.<name>` references.'),
    condition: Type.Optional(Type.String({ minLength: 1, maxLength: 512 })),
  },
  closed,
);
export type ComposeStep = Static<typeof ComposeStep>;

export const ToolTest = Type.Object(
  {
    input: JsonText(32_768, 'JSON text: the arguments of the case.'),
    expectedOutput: Type.Optional(JsonText(32_768, 'JSON text: the output that must come back.')),
    fixtures: Type.Optional(
      Type.Array(
        Type.Object(
          {
            tool: ToolName,
            input: Type.Optional(
              JsonText(16_384, 'JSON text: the arguments this fixture answers; absent answers any.'),
            ),
            output: JsonText(16_384, 'JSON text: the answer of the tool.'),
          },
          closed,
        ),
        {
          maxItems: 20,
          'x-kubernetes-list-type': 'atomic',
          description: 'Answers of tools with side effects, used in place of the tools while testing.',
        },
      ),
    ),
  },
  closed,
);
export type ToolTest = Static<typeof ToolTest>;

/**
 * The artifact: everything the digest covers, and nothing with a default.
 * Arbitrary JSON is kept as canonical JSON text, since structured values lose their nulls on the way through an API server.
 */
export const ToolArtifact = Type.Object(
  {
    name: ToolName,
    description: Type.String({ minLength: 1, maxLength: 2048 }),
    inputSchema: JsonText(32_768, 'JSON text: the JSON Schema of the arguments.'),
    outputSchema: JsonText(32_768, 'JSON text: the JSON Schema of the output.'),
    implementation: Type.Object(
      {
        mode: ForgeMode,
        source: Type.Optional(
          Type.String({
            minLength: 1,
            maxLength: 32_768,
            description: 'JavaScript that defines `execute(input)`; mode Sandbox.',
          }),
        ),
        steps: Type.Optional(
          Type.Array(ComposeStep, { minItems: 1, maxItems: 20, 'x-kubernetes-list-type': 'atomic' }),
        ),
      },
      closed,
    ),
    tests: Type.Array(ToolTest, { minItems: 1, maxItems: 50, 'x-kubernetes-list-type': 'atomic' }),
    requires: Type.Object(
      {
        apis: Type.Array(ToolApi, { maxItems: 5, 'x-kubernetes-list-type': 'atomic' }),
        domains: Type.Array(Type.String({ minLength: 1, maxLength: 253 }), {
          maxItems: 20,
          'x-kubernetes-list-type': 'atomic',
        }),
        paths: Type.Array(Type.String({ minLength: 1, maxLength: 256 }), {
          maxItems: 20,
          'x-kubernetes-list-type': 'atomic',
        }),
      },
      closed,
    ),
    limits: Type.Object({ duration: Duration, memory: Bytes }, closed),
  },
  closed,
);
export type ToolArtifact = Static<typeof ToolArtifact>;

export const EmergentToolSpec = Type.Object(
  {
    artifact: ToolArtifact,
    digest: Type.String({ pattern: '^sha256:[0-9a-f]{64}$' }),
    tier: Type.Enum(['Agent', 'Shared']),
    contributors: Type.Optional(
      Type.Array(Type.String({ maxLength: 253 }), { maxItems: 20, 'x-kubernetes-list-type': 'set' }),
    ),
    requestNonce: Type.Optional(Type.String({ maxLength: 64 })),
  },
  closed,
);
export type EmergentToolSpec = Static<typeof EmergentToolSpec>;

export const EmergentToolStatus = Type.Object(
  {
    observedGeneration: Type.Optional(Type.Integer({ minimum: 0 })),
    active: Type.Optional(Type.Boolean()),
    promotion: Type.Optional(Type.String({ maxLength: 64 })),
    conditions: Type.Optional(Conditions),
  },
  closed,
);
export type EmergentToolStatus = Static<typeof EmergentToolStatus>;

export type EmergentTool = Resource<'EmergentTool', EmergentToolSpec, EmergentToolStatus>;
