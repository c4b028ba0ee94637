import type { Digest } from '../lib/canonical.ts';
import { printable } from '../lib/printable.ts';
import { type Json, type JsonObject, member } from '../lib/json.ts';
import { type EventSink, type Gate, type GateResult, GATES } from '../tools/events.ts';
import type { ForgeViolation } from './request.ts';
import type { ForgeEvidence, RefusedTool, RejectionClass } from './types.ts';

const MAX_NOTE = 120;
const MAX_MESSAGE = 4_000;

/** Gates that the author's side reports as passed; a review runs them again, and records only the others. */
const AUTHOR_GATES: readonly Gate[] = GATES.slice(0, GATES.indexOf('policy'));

/** What the author's side reports about a tool that it submits, for the record only. */
interface ReportedGates {
  gates?: readonly GateResult[];
  evidence: ForgeEvidence;
}

/** Records the gates that one tool has passed so far, and emits an event for each. */
export class GateRecorder {
  readonly gates: GateResult[];
  readonly tool: string;
  digest: Digest | undefined;
  readonly #events: EventSink;
  readonly #evidence: ForgeEvidence | undefined;
  readonly #isReview: boolean;

  constructor(tool: string, events: EventSink, reported?: ReportedGates) {
    this.tool = tool;
    this.#events = events;
    this.gates = passedGates(reported?.gates ?? []);
    this.#evidence = reported?.evidence;
    this.#isReview = reported !== undefined;
  }

  /** In a review, the gates that the author's side passed stand in the record as it reported them: it emitted their events. */
  pass(gate: Gate, note = ''): void {
    if (this.#isReview && AUTHOR_GATES.includes(gate)) return;
    this.#add({ gate, passed: true, note: printable(note, MAX_NOTE) });
  }

  /** Ends the forge. The refusal has the code of the first violation, and its message lists every violation. */
  refuse(
    gate: Gate,
    violations: readonly [ForgeViolation, ...ForgeViolation[]],
    more: { note?: string; evidence?: ForgeEvidence; details?: JsonObject; extraField?: boolean } = {},
  ): RefusedTool {
    const [{ code }] = violations;
    const message = printable(violations.map((violation) => violation.message).join('; '), MAX_MESSAGE);
    const evidence = more.evidence ?? this.#evidence;
    this.#add({ gate, passed: false, note: printable(more.note ?? violations[0].message, MAX_NOTE) });
    this.#events({ type: 'forge-refused', tool: this.tool, gate, code, message });
    return {
      accepted: false,
      name: this.tool,
      ...(this.digest === undefined ? {} : { digest: this.digest }),
      gate,
      code,
      class: classifyRejection(gate, violations, more.extraField ?? false),
      message,
      details: { violations: violations.map((violation) => ({ ...violation })), ...more.details },
      ...(evidence === undefined ? {} : { evidence }),
      gates: this.gates,
    };
  }

  #add(result: GateResult): void {
    this.gates.push(result);
    this.#events({ type: 'forge-gate', tool: this.tool, result });
  }
}

function passedGates(reported: readonly GateResult[]): GateResult[] {
  return AUTHOR_GATES.flatMap((gate) => {
    const result = reported.find((candidate) => candidate.gate === gate && candidate.passed);
    return result === undefined ? [] : [{ gate, passed: true, note: printable(result.note, MAX_NOTE) }];
  });
}

/** The name of an untrusted request or artifact, for records. */
export function shownName(given: Json): string {
  const name = member(given, 'name');
  return printable(typeof name === 'string' ? name : 'unnamed', 64);
}

/** Narrows a list of violations to a non-empty one. */
export function hasViolations(
  violations: readonly ForgeViolation[],
): violations is readonly [ForgeViolation, ...ForgeViolation[]] {
  return violations.length > 0;
}

/** The rejection class of a refused attempt: the first that fits, in the order of the type. */
function classifyRejection(gate: Gate, violations: readonly ForgeViolation[], extraField: boolean): RejectionClass {
  const has = (...codes: ForgeViolation['code'][]): boolean => violations.some(({ code }) => codes.includes(code));
  if (extraField || has('TEMPER_FORGE_EXTRA_FIELD')) return 'schema_extra_field';
  if (gate === 'shape') return 'shape_check';
  if (has('TEMPER_FORGE_SYNTAX', 'TEMPER_SANDBOX_SYNTAX')) return 'syntax_error';
  if (gate === 'normalization') return 'parse_error';
  if (has('TEMPER_JUDGE_REFUSED')) return 'judge_correctness';
  return 'other';
}
