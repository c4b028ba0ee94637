import type { ToolCandidate, RefusedTool } from '../../forge/types.ts';
import { type ErrorCode, isErrorCode } from '../../lib/error-codes.ts';
import { printable } from '../../lib/printable.ts';
import type { GateResult } from '../../tools/events.ts';
import type { RejectedToolRequest, ReviewRequest } from '../../gateway-api/tool-schemas.ts';

/** The candidate with known members only. The review parses the artifact itself. */
export function candidateOf({ artifact, digest, evidence, gates }: ReviewRequest['candidate']): ToolCandidate {
  return {
    artifact: artifact as unknown as ToolCandidate['artifact'],
    digest,
    evidence: {
      tests: evidence.tests.map(({ case: number, run, passed, got, failure, milliseconds, heapBytes }) => ({
        case: number,
        run,
        passed,
        milliseconds,
        heapBytes,
        ...(got === undefined ? {} : { got }),
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
export function refusedOf({ refused }: RejectedToolRequest): RefusedTool {
  const { name, digest, gate, code, message, details, gates } = refused;
  return {
    accepted: false,
    name: printable(name, 80),
    ...(digest === undefined ? {} : { digest }),
    gate,
    code: codeOf(code),
    class: printable(refused.class, 40) as RefusedTool['class'],
    message: printable(message, 4_096),
    details,
    gates: gatesOf(gates),
  };
}

function codeOf(code: ErrorCode): ErrorCode {
  return isErrorCode(code) ? code : 'TEMPER_TOOL_FAILED';
}

function gatesOf(gates: readonly GateResult[]): GateResult[] {
  return gates.map(({ gate, passed, note }) => ({ gate, passed, note: printable(note, 200) }));
}
