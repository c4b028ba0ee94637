import { type Static, Type } from 'typebox';
import { closed } from '../../api/v1alpha1/common.ts';
import type { ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import type { ToolFixture } from '../../forge/request.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import type { JsonObject } from '../../lib/json.ts';
import type { CaseOutputs, RunOutput, VerificationCase } from '../../tempering/verification/verification-case.ts';
import { AnyJson } from '../../tools/event-schema/parts.ts';
import type { CallRecording } from '../../tools/recording/call-recording.ts';
import { describes, DigestText } from '../schema-parts.ts';

/** Tests, recorded inputs and the inputs of examinations. */
const MAX_CASES = 1_000;

const Attempt = Type.String({
  pattern: '^[A-Za-z0-9_-]{1,64}$',
  description: 'The verification that the work is for.',
});
const Artifact = Type.Unsafe<ToolArtifact>({
  type: 'object',
  description: '`spec.artifact` of an EmergentTool, without its tests.',
});
const Case = describes<VerificationCase>()(
  Type.Object({
    input: Type.Unsafe<JsonObject>({ type: 'object' }),
    fixtures: Type.Unsafe<readonly ToolFixture[]>({ type: 'array' }),
    recording: Type.Optional(
      Type.Unsafe<CallRecording>({
        type: 'object',
        description: 'The calls of a recorded use with their answers: the run gets these, and must make these calls.',
      }),
    ),
  }),
);

export const VerificationWork = Type.Object(
  {
    attempt: Attempt,
    artifact: Artifact,
    dependencies: Type.Array(Type.Object({ digest: DigestText, artifact: Artifact }, closed), {
      description: 'The forged tools that its steps call, by the digest that the steps pin.',
    }),
    cases: Type.Array(Case, { description: 'Each is run twice. No case has an expected output.' }),
  },
  { ...closed, description: 'What a verifier pod runs.' },
);
export type VerificationWork = Static<typeof VerificationWork>;

const Output = describes<RunOutput>()(
  Type.Union([
    Type.Object({ ok: Type.Literal(true), output: AnyJson }, closed),
    Type.Object(
      {
        ok: Type.Literal(false),
        code: Type.Unsafe<ErrorCode>({ type: 'string', pattern: '^TEMPER_[A-Z_]{1,56}$' }),
        message: Type.String({ maxLength: 8_192 }),
      },
      closed,
    ),
  ]),
);

export const VerificationOutputs = Type.Object(
  {
    attempt: Attempt,
    outputs: Type.Array(Type.Unsafe<CaseOutputs>(Type.Tuple([Output, Output])), {
      maxItems: MAX_CASES,
      description: 'What both runs of each case gave, in the order of the cases.',
    }),
  },
  { ...closed, description: 'The outputs of a verifier pod. The pod may be hostile: the operator compares them.' },
);
export type VerificationOutputs = Static<typeof VerificationOutputs>;

export const VerificationQuery = Type.Object(
  { wait: Type.Optional(Type.Integer({ minimum: 0, maximum: 30, description: 'Seconds.' })) },
  closed,
);
