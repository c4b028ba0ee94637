import { isTemperError } from '../../lib/errors.ts';
import { parseUntrustedJson } from '../../lib/json.ts';
import { createSchemaCompiler } from '../../tools/json-schema/compiler.ts';
import { requiredValue } from './finish.ts';

/** Whether the reply is JSON that matches `spec.returns` of an agent. False for a schema that cannot be used. */
export function hasRequiredForm(returns: string | undefined, reply: string): boolean {
  if (returns === undefined) return false;
  try {
    return requiredValue(returns, createSchemaCompiler()).check(parseUntrustedJson(reply)).accepted;
  } catch (error) {
    if (error instanceof SyntaxError || isTemperError(error, 'TEMPER_MANIFEST_INVALID')) return false;
    throw error;
  }
}
