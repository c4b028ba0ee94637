import { type Static, Type } from 'typebox';
import type { ToolCandidate, RefusedTool } from '../../forge/types.ts';
import type { Digest } from '../../lib/canonical.ts';
import { type ErrorCode, isErrorCode } from '../../lib/error-codes.ts';
import { printable } from '../../lib/printable.ts';
import type { Json, JsonObject } from '../../lib/json.ts';
import type { Gate, GateResult } from '../../tools/events.ts';
import { closed, DeliveryToken } from '../http/schemas.ts';

const text = (maxLength: number) => Type.String({ maxLength });
const amount = Type.Number({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
const AnyObject = Type.Record(Type.String(), Type.Unknown());

const GateName = Type.String({ pattern: '^[a-z-]{1,32}$' });
const Gates = Type.Array(Type.Object({ gate: GateName, passed: Type.Boolean(), note: text(4_096) }), { maxItems: 32 });
const Run = Type.Object({
  case: Type.Integer({ minimum: 0, maximum: 10_000 }),
  run: Type.Union([Type.Literal(1), Type.Literal(2)]),
  passed: Type.Boolean(),
  got: Type.Optional(Type.Unknown()),
  failure: Type.Optional(Type.Object({ code: text(64), message: text(8_192) })),
  milliseconds: amount,
  heapBytes: amount,
});
const DigestString = Type.String({ pattern: '^sha256:[0-9a-f]{64}$' });

/** Ignored: the gateway takes the author's model from the agent. */
const authorModel = text(256);

export const ReviewBody = Type.Object(
  {
    deliveryToken: DeliveryToken,
    authorModel: Type.Optional(authorModel),
    candidate: Type.Object({
      artifact: AnyObject,
      digest: DigestString,
      evidence: Type.Object({
        tests: Type.Array(Run, { maxItems: 1_000 }),
        milliseconds: amount,
        heapBytes: amount,
        warnings: Type.Array(text(2_048), { maxItems: 100 }),
      }),
      gates: Type.Optional(Gates),
    }),
  },
  closed,
);

export const RejectedBody = Type.Object(
  {
    deliveryToken: DeliveryToken,
    authorModel: Type.Optional(authorModel),
    refused: Type.Object({
      name: text(256),
      digest: Type.Optional(DigestString),
      gate: GateName,
      code: text(64),
      class: text(64),
      message: text(65_536),
      details: Type.Optional(AnyObject),
      gates: Gates,
    }),
  },
  closed,
);

/** The candidate with known members only. The review parses the artifact itself. */
export function candidateOf({
  artifact,
  digest,
  evidence,
  gates,
}: Static<typeof ReviewBody>['candidate']): ToolCandidate {
  return {
    artifact: artifact as unknown as ToolCandidate['artifact'],
    digest: digest as Digest,
    evidence: {
      tests: evidence.tests.map(({ case: number, run, passed, got, failure, milliseconds, heapBytes }) => ({
        case: number,
        run,
        passed,
        milliseconds,
        heapBytes,
        ...(got === undefined ? {} : { got: got as Json }),
        ...(failure === undefined ? {} : { failure: { code: codeOf(failure.code), message: failure.message } }),
      })),
      milliseconds: evidence.milliseconds,
      heapBytes: evidence.heapBytes,
      warnings: [...evidence.warnings],
    },
    ...(gates === undefined ? {} : { gates: gatesOf(gates) }),
  };
}

/** A refusal reported by the pod. The pod's evidence is not stored. */
export function refusedOf({ refused }: Static<typeof RejectedBody>): RefusedTool {
  const { name, digest, gate, code, message, details, gates } = refused;
  return {
    accepted: false,
    name: printable(name, 80),
    ...(digest === undefined ? {} : { digest: digest as Digest }),
    gate: gate as Gate,
    code: codeOf(code),
    class: printable(refused.class, 40) as RefusedTool['class'],
    message: printable(message, 4_096),
    details: (details ?? {}) as JsonObject,
    gates: gatesOf(gates),
  };
}

function codeOf(code: string): ErrorCode {
  return isErrorCode(code) ? code : 'TEMPER_TOOL_FAILED';
}

function gatesOf(gates: Static<typeof Gates>): GateResult[] {
  return gates.map(({ gate, passed, note }) => ({ gate: gate as Gate, passed, note: printable(note, 200) }));
}
