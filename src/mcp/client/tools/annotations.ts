import type { JsonObject } from '../../../lib/json.ts';
import type { ActionType } from '../../../policy/types.ts';

/**
 * The action type of a tool by the hints of its server. What a hint does not deny is assumed: the defaults of the protocol are that a tool
 * writes, destroys and reaches other systems. A server elsewhere is another system itself. The hints are part of the digest that a user
 * accepts.
 */
export function actionOf(hints: JsonObject, isElsewhere: boolean): { action: ActionType; sideEffects: boolean } {
  const { readOnlyHint, destructiveHint, openWorldHint } = hints;
  const isOpen = isElsewhere || openWorldHint !== false;
  if (readOnlyHint === true) return { action: isOpen ? 'comms:external' : 'code:read', sideEffects: false };
  if (destructiveHint !== false) return { action: 'code:delete', sideEffects: true };
  return { action: isOpen ? 'comms:external' : 'code:write', sideEffects: true };
}
