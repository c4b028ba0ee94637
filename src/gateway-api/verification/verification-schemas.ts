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
import { MAX_ROUNDS } from './verification-limits.ts';

/** Tests and recorded inputs, or the inputs of a round of the examination. */
const MAX_CASES = 1_000;

const Attempt = Type.String({
  pattern: '^[A-Za-z0-9_-]{1,64}$',
  description: 'The verification that the work is for.',
});
const roundOf = (description: string) => Type.Integer({ minimum: 0, maximum: MAX_ROUNDS, description });
const Round = roundOf('0: the tests and recorded inputs. Further ones: the inputs of the examination.');
const Artifact = Type.Unsafe<ToolArtifact>({
  type: 'object',
  description: '`spec.artifact` of an EmergentTool, or a version of it that an examination runs, without tests.',
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
    round: Round,
    artifact: Artifact,
    dependencies: Type.Array(Type.Object({ digest: DigestText, artifact: Artifact }, closed), {
      description: 'The forged tools that its steps call, by the digest that the steps pin.',
    }),
    cases: Type.Array(Case, { description: 'Each is run twice. No case has an expected output.' }),
    maxLimitFailures: Type.Optional(
      Type.Integer({
        minimum: 1,
        description: 'Cases that end at a limit of time or memory, after which the pod runs no further ones.',
      }),
    ),
  },
  { ...closed, description: 'What a verifier pod runs in one round.' },
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
    round: Round,
    outputs: Type.Array(Type.Unsafe<CaseOutputs>(Type.Tuple([Output, Output])), {
      maxItems: MAX_CASES,
      description: 'What both runs of each case gave, in the order of the cases.',
    }),
  },
  { ...closed, description: 'The outputs of a verifier pod. The pod may be hostile: the operator compares them.' },
);
export type VerificationOutputs = Static<typeof VerificationOutputs>;

export const VerificationQuery = Type.Object(
  {
    wait: Type.Optional(Type.Integer({ minimum: 0, maximum: 30, description: 'Seconds.' })),
    round: Type.Optional(roundOf('The round that the pod waits for; the first one without it.')),
  },
  closed,
);
