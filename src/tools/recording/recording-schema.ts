import { Type } from 'typebox';
import { AnyJson, Code } from '../event-schema/parts.ts';
import { UNRECORDED_REASONS } from './call-recording.ts';

const closed = { additionalProperties: false };
/** The receiver counts calls and bytes again; these limits bound what it reads. */
const MAX_CALLS = 64;
const Milliseconds = Type.Integer({ minimum: 0, maximum: 8_640_000_000_000_000 });

const Answer = Type.Union([
  Type.Object({ ok: Type.Literal(true), value: AnyJson }, closed),
  Type.Object({ ok: Type.Literal(false), code: Code, message: Type.String({ maxLength: 16_384 }) }, closed),
]);

const Call = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 256 }),
    input: AnyJson,
    answer: Type.Optional(Answer),
    evidence: Type.Enum(['observed', 'reported']),
  },
  closed,
);

const Sandbox = Type.Object(
  {
    startTime: Milliseconds,
    seed: Type.String({ pattern: '^[0-9a-f]{32}$' }),
    answers: Type.Array(
      Type.Object({ call: Type.Integer({ minimum: 1, maximum: MAX_CALLS }), time: Milliseconds }, closed),
      { maxItems: MAX_CALLS },
    ),
  },
  closed,
);

/** What a forged tool got from outside in one use, as its pod reports it. */
export const ReportedRecording = Type.Union(
  [
    Type.Object(
      {
        ok: Type.Literal(true),
        recording: Type.Object(
          { calls: Type.Array(Call, { maxItems: MAX_CALLS }), sandbox: Type.Optional(Sandbox) },
          closed,
        ),
      },
      closed,
    ),
    Type.Object({ ok: Type.Literal(false), reason: Type.Enum([...UNRECORDED_REASONS]) }, closed),
  ],
  { description: 'What the tool got from outside, or why it is not recorded; always stored as reported by the pod.' },
);
