import type { Gate } from '../tools/events.ts';
import type { ForgeViolation } from './request.ts';
import type { RejectionClass } from './types.ts';

/** The rejection class of a refused attempt: the first that fits, in the order of the type. */
export function classifyRejection(
  gate: Gate,
  violations: readonly ForgeViolation[],
  extraField: boolean,
): RejectionClass {
  const has = (...codes: ForgeViolation['code'][]): boolean => violations.some(({ code }) => codes.includes(code));
  if (extraField || has('TEMPER_FORGE_EXTRA_FIELD')) return 'schema_extra_field';
  if (gate === 'shape') return 'shape_check';
  if (has('TEMPER_FORGE_SYNTAX', 'TEMPER_SANDBOX_SYNTAX')) return 'syntax_error';
  if (gate === 'normalization') return 'parse_error';
  if (has('TEMPER_JUDGE_REFUSED')) return 'judge_correctness';
  return 'other';
}
