import type { Digest } from '../lib/canonical.ts';
import { printable } from '../lib/printable.ts';
import type { JsonObject } from '../lib/json.ts';
import type { EventSink, Gate, GateResult } from '../tools/events.ts';
import { classifyRejection } from './rejection-class.ts';
import type { ForgeViolation } from './request.ts';
import type { ForgeEvidence, RefusedTool } from './types.ts';

const MAX_NOTE = 120;
const MAX_MESSAGE = 4_000;

/** Records the gates that one tool has passed so far, and emits an event for each. */
export class GateRecorder {
  readonly gates: GateResult[];
  tool: string;
  digest: Digest | undefined;
  readonly #events: EventSink;

  constructor(tool: string, events: EventSink, gates: readonly GateResult[] = []) {
    this.tool = tool;
    this.#events = events;
    this.gates = [...gates];
  }

  pass(gate: Gate, note = ''): void {
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
      ...(more.evidence === undefined ? {} : { evidence: more.evidence }),
      gates: this.gates,
    };
  }

  #add(result: GateResult): void {
    this.gates.push(result);
    this.#events({ type: 'forge-gate', tool: this.tool, result });
  }
}

/** Narrows a list of violations to a non-empty one. */
export function hasViolations(
  violations: readonly ForgeViolation[],
): violations is readonly [ForgeViolation, ...ForgeViolation[]] {
  return violations.length > 0;
}
