import { Type, type Static } from 'typebox';
import {
  Bytes,
  Conditions,
  Digest,
  Duration,
  ForgeMode,
  ObservedGeneration,
  Text,
  ToolApi,
  ToolName,
  atomicListOf,
  closed,
  setOf,
} from './common.ts';
import type { Resource } from './common.ts';

/** One step of a composed tool. `tool` is a built-in name, or `name@sha256:…` of a forged one. */
export const ComposeStep = Type.Object(
  {
    name: Type.String({
      pattern: '^[A-Za-z][A-Za-z0-9_-]{0,62}$',
      maxLength: 63,
      description: 'What later steps call it by: `$steps.<name>`.',
    }),
    tool: Type.String({
      pattern: '^[a-z][a-z0-9_-]{0,62}(@sha256:[0-9a-f]{64})?$',
      maxLength: 135,
      description: 'A built-in tool by name, or a forged one as `name@sha256:…`.',
    }),
    inputMapping: Text(16_384, 'JSON text: the arguments, with `$input`, `$prev` and `$steps.<name>` references.'),
    condition: Type.Optional(Text(512, 'The step is skipped when this does not hold, e.g. `$prev.count > 0`.')),
  },
  closed,
);
export type ComposeStep = Static<typeof ComposeStep>;

export const ToolTest = Type.Object(
  {
    input: Text(32_768, 'JSON text: the arguments of the case.'),
    expectedOutput: Type.Optional(Text(32_768, 'JSON text: the output that must come back.')),
    fixtures: Type.Optional(
      atomicListOf(
        Type.Object(
          {
            tool: ToolName,
            input: Type.Optional(Text(16_384, 'JSON text: the arguments this fixture answers; absent answers any.')),
            output: Text(16_384, 'JSON text: the answer of the tool.'),
          },
          closed,
        ),
        20,
        'Answers of tools with side effects, used in place of the tools while testing.',
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
    description: Text(2048, 'What the tool does, for the model that chooses it.'),
    inputSchema: Text(32_768, 'JSON text: the JSON Schema of the arguments.'),
    outputSchema: Text(32_768, 'JSON text: the JSON Schema of the output.'),
    implementation: Type.Object(
      {
        mode: ForgeMode,
        source: Type.Optional(Text(32_768, 'JavaScript that defines `execute(input)`. Only for mode `Sandbox`.')),
        steps: Type.Optional(
          Type.Array(ComposeStep, {
            minItems: 1,
            maxItems: 20,
            'x-kubernetes-list-type': 'atomic',
            description: 'Calls of other tools, in order. Only for mode `Compose`.',
          }),
        ),
      },
      { ...closed, description: 'How the tool works.' },
    ),
    tests: Type.Array(ToolTest, {
      minItems: 1,
      maxItems: 50,
      'x-kubernetes-list-type': 'atomic',
      description: 'Cases the tool passed, and passes again before every promotion.',
    }),
    requires: Type.Object(
      {
        apis: atomicListOf(ToolApi, 5, 'Host functions it uses. It has no others.'),
        domains: atomicListOf(Text(253, 'A host.'), 20, 'Hosts its `fetch` reaches.'),
        paths: atomicListOf(Text(256, 'A folder or file.'), 20, 'Paths its `fs.readFile` reads.'),
      },
      { ...closed, description: 'What the tool needs beside its input.' },
    ),
    limits: Type.Object(
      {
        duration: { ...Duration, description: 'Time of one run, from 1ms to 30s.' },
        memory: { ...Bytes, description: 'Memory of one run, from 8Mi to 1Gi.' },
      },
      { ...closed, description: 'What one run may take.' },
    ),
  },
  { ...closed, description: 'The tool itself: all that its digest covers, at most 128 KiB.' },
);
export type ToolArtifact = Static<typeof ToolArtifact>;

export const EmergentToolSpec = Type.Object(
  {
    artifact: ToolArtifact,
    digest: { ...Digest, description: 'SHA-256 over the canonical JSON (RFC 8785) of the artifact.' },
    tier: Type.Enum(['Agent', 'Shared'], { description: 'Who may use it: its agent, or all agents of the namespace.' }),
    contributors: Type.Optional(
      setOf(Text(253, 'An agent or a user.'), 20, 'Who took part in it. They may not approve it.'),
    ),
    requestNonce: Type.Optional(Text(64, 'The nonce of the request whose approval makes it active.')),
  },
  closed,
);
export type EmergentToolSpec = Static<typeof EmergentToolSpec>;

export const EmergentToolStatus = Type.Object(
  {
    observedGeneration: Type.Optional(ObservedGeneration),
    active: Type.Optional(Type.Boolean({ description: 'Agents can call it.' })),
    promotion: Type.Optional(
      Type.Enum(['Candidate', 'PanelReview', 'AwaitingApproval', 'Promoted', 'Rejected'], {
        description: 'How far the next promotion has come.',
      }),
    ),
    conditions: Type.Optional(Conditions),
  },
  closed,
);
export type EmergentToolStatus = Static<typeof EmergentToolStatus>;

export type EmergentTool = Resource<'EmergentTool', EmergentToolSpec, EmergentToolStatus>;
