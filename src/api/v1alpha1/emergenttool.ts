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
      description: 'The name of the step. Later steps refer to its result as `$steps.<name>`.',
    }),
    tool: Type.String({
      pattern: '^[a-z][a-z0-9_-]{0,62}(@sha256:[0-9a-f]{64})?$',
      maxLength: 135,
      description: 'The name of a built-in tool, or a forged tool as `name@sha256:…`.',
    }),
    inputMapping: Text(
      16_384,
      'The arguments as JSON text. Can contain the references `$input`, `$prev` and `$steps.<name>`.',
    ),
    condition: Type.Optional(
      Text(512, 'A condition such as `$prev.count > 0`. The step is skipped when the condition is false.'),
    ),
  },
  closed,
);
export type ComposeStep = Static<typeof ComposeStep>;

export const ToolTest = Type.Object(
  {
    input: Text(32_768, 'The arguments of the test case, as JSON text.'),
    expectedOutput: Type.Optional(Text(32_768, 'The expected output, as JSON text.')),
    fixtures: Type.Optional(
      atomicListOf(
        Type.Object(
          {
            tool: ToolName,
            input: Type.Optional(
              Text(
                16_384,
                'The arguments that this fixture matches, as JSON text. When absent, it matches any arguments.',
              ),
            ),
            output: Text(16_384, 'The result of the tool, as JSON text.'),
          },
          closed,
        ),
        20,
        'Recorded results of tools with side effects. Tests use them instead of calling the tools.',
      ),
    ),
  },
  closed,
);
export type ToolTest = Static<typeof ToolTest>;

/**
 * The artifact: everything that the digest covers. No field has a default.
 * Arbitrary JSON is stored as canonical JSON text, because the API server drops null members of structured values.
 */
export const ToolArtifact = Type.Object(
  {
    name: ToolName,
    description: Text(2048, 'What the tool does. Models read this when they choose a tool.'),
    inputSchema: Text(32_768, 'The JSON Schema of the arguments, as JSON text.'),
    outputSchema: Text(32_768, 'The JSON Schema of the output, as JSON text.'),
    implementation: Type.Object(
      {
        mode: ForgeMode,
        source: Type.Optional(
          Text(32_768, 'JavaScript source code that defines `execute(input)`. Only for mode `Sandbox`.'),
        ),
        steps: Type.Optional(
          Type.Array(ComposeStep, {
            minItems: 1,
            maxItems: 20,
            'x-kubernetes-list-type': 'atomic',
            description: 'The calls of other tools, in order. Only for mode `Compose`.',
          }),
        ),
      },
      { ...closed, description: 'The implementation of the tool.' },
    ),
    tests: Type.Array(ToolTest, {
      minItems: 1,
      maxItems: 50,
      'x-kubernetes-list-type': 'atomic',
      description: 'The test cases. The tool must pass them when it is forged and again before each promotion.',
    }),
    requires: Type.Object(
      {
        apis: atomicListOf(ToolApi, 5, 'Host functions that the tool uses. All other host functions are unavailable.'),
        domains: atomicListOf(Text(253, 'A host.'), 20, 'Hosts that the tool connects to with `fetch`.'),
        paths: atomicListOf(Text(256, 'A folder or file.'), 20, 'Paths that the tool reads with `fs.readFile`.'),
      },
      { ...closed, description: 'The host functions, hosts and paths that the tool needs.' },
    ),
    limits: Type.Object(
      {
        duration: {
          ...Duration,
          description: 'Maximum duration of one execution, from 1ms to 30s; to 60s for a composed tool.',
        },
        memory: { ...Bytes, description: 'Maximum memory of one execution, from 8Mi to 1Gi.' },
      },
      { ...closed, description: 'The limits of one execution.' },
    ),
  },
  { ...closed, description: 'The tool itself: everything that the digest covers, at most 128 KiB.' },
);
export type ToolArtifact = Static<typeof ToolArtifact>;

/** What an object has of a source that its agent withholds. */
export const WithheldSource = Type.Object(
  {
    digest: { ...Digest, description: 'The SHA-256 digest of the source, as UTF-8.' },
    bytes: Type.Integer({ minimum: 0, maximum: 131_072, description: 'The size of the source in bytes, as UTF-8.' }),
  },
  {
    ...closed,
    description:
      'Stands in the place of `artifact.implementation.source` for a tool of tier Agent whose agent has `forge.persistSource: false`. The source is in the encrypted store of the cluster. A tool without its source cannot be shared.',
  },
);
export type WithheldSource = Static<typeof WithheldSource>;

export const EmergentToolSpec = Type.Object(
  {
    artifact: ToolArtifact,
    digest: { ...Digest, description: 'The SHA-256 digest of the canonical JSON (RFC 8785) of the artifact.' },
    withheldSource: Type.Optional(WithheldSource),
    tier: Type.Enum(['Agent', 'Shared'], {
      description: 'The scope of the tool: `Agent` for its own agent, `Shared` for all agents of the namespace.',
    }),
    contributors: Type.Optional(
      setOf(
        Text(253, 'An agent or a user.'),
        20,
        'Agents and users who contributed to the tool. They may not approve it.',
      ),
    ),
    requestNonce: Type.Optional(
      Text(64, 'The nonce of the ApprovalRequest that must be approved before the tool becomes active.'),
    ),
  },
  closed,
);
export type EmergentToolSpec = Static<typeof EmergentToolSpec>;

const Count = (description: string) => Type.Integer({ minimum: 0, maximum: 1_000_000, description });

export const ToolVerification = Type.Object(
  {
    result: Type.Enum(['Passed', 'Failed'], { description: 'Whether the tool may be in service.' }),
    verifiedAt: Text(40, 'When the operator compared the outputs, in RFC 3339 format.'),
    observedGeneration: ObservedGeneration,
    tests: Count('Tests that ran.'),
    failedTests: Count('Tests that failed.'),
    reruns: Count('Recorded inputs that ran again. 0 on a cluster that has recorded none, and for a scheduled run.'),
    successes: Count('Recorded inputs with a valid output.'),
  },
  { ...closed, description: 'The last run of the tests in a verifier pod of this cluster.' },
);
export type ToolVerification = Static<typeof ToolVerification>;

const AuditedSession = (description: string) =>
  Type.Object(
    {
      outcome: Text(64, 'How the task ended: `complete`, `refusal`, `truncated`, or the code of an error.'),
      uses: Count('Calls of the tool.'),
      toolCalls: Count('Calls of all tools.'),
      turns: Count('Answers of the model.'),
      tokens: Type.Integer({ minimum: 0, maximum: 1_000_000_000, description: 'Input and output tokens.' }),
    },
    { ...closed, description },
  );

export const AuditedTool = Type.Object(
  {
    auditedAt: Text(40, 'When the last session ended, in RFC 3339 format.'),
    agent: Text(253, 'The agent whose prompt, model and policy the fresh agents had.'),
    model: Text(256, 'The model, as `provider/model`.'),
    evidence: Type.Enum(['Compared', 'NeverCalled'], {
      description: 'Whether a task called the tool. `NeverCalled` says nothing for or against it.',
    }),
    tasks: atomicListOf(
      Type.Object(
        {
          task: Text(200, 'The task, perhaps cut.'),
          withTool: AuditedSession('A fresh agent with the tool.'),
          withoutTool: AuditedSession('A fresh agent without it.'),
        },
        closed,
      ),
      10,
      'The tasks.',
    ),
  },
  { ...closed, description: 'The last audit by fresh agents. It decides nothing.' },
);
export type AuditedTool = Static<typeof AuditedTool>;

export const EmergentToolStatus = Type.Object(
  {
    observedGeneration: Type.Optional(ObservedGeneration),
    active: Type.Optional(Type.Boolean({ description: 'Whether agents can call the tool.' })),
    promotion: Type.Optional(
      Type.Enum(['Candidate', 'PanelReview', 'AwaitingApproval', 'Promoted', 'Rejected'], {
        description: 'The state of the next promotion.',
      }),
    ),
    verification: Type.Optional(ToolVerification),
    audit: Type.Optional(AuditedTool),
    conditions: Type.Optional(Conditions),
  },
  closed,
);
export type EmergentToolStatus = Static<typeof EmergentToolStatus>;

export type EmergentTool = Resource<'EmergentTool', EmergentToolSpec, EmergentToolStatus>;
