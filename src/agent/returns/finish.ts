import { TemperError } from '../../lib/errors.ts';
import { isJsonObject, type Json, type JsonObject, parseUntrustedJson } from '../../lib/json.ts';
import type { ToolDescriptor } from '../../tools/contract.ts';
import type { SchemaCompiler, ValueCheck } from '../../tools/json-schema/compiler.ts';

/** The name of the tool with which a model gives the value of an agent with `spec.returns`. No forged tool can have it. */
export const FINISH_TOOL_NAME = 'finish';

/** The verdict on a value: the reply of the message, or what is wrong with the value. */
export type FinishVerdict = { accepted: true; reply: string } | { accepted: false; problem: string };

/** The value that every answer of an agent must have. */
export interface RequiredValue {
  readonly tool: ToolDescriptor;
  check(value: Json): FinishVerdict;
}

/** Characters of a value as JSON. A reply has no more. */
const MAX_VALUE_CHARACTERS = 100_000;

/**
 * Reads `spec.returns`. The schema is as untrusted as that of a tool. Throws TEMPER_MANIFEST_INVALID for text that is no schema of an
 * object, or a schema that is unsafe to check values with.
 */
export function requiredValue(returns: string, schemas: SchemaCompiler): RequiredValue {
  const schema = parseSchema(returns);
  const violations = schemas.validate(schema, 'spec.returns').filter(({ problem }) => problem !== 'unknown-keyword');
  const [first] = violations;
  if (first !== undefined) throw invalid(`${first.path}: ${first.message}`);
  return { tool: finishTool(schema), check: (value) => verdictOn(value, schemas.check(schema)) };
}

function parseSchema(returns: string): JsonObject {
  let schema: Json;
  try {
    schema = parseUntrustedJson(returns);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw invalid('spec.returns is not JSON; write a JSON Schema as JSON text');
  }
  if (isJsonObject(schema) && schema['type'] === 'object') return schema;
  throw invalid('spec.returns must be a JSON Schema with "type": "object"; put another value into a member');
}

function invalid(message: string): TemperError {
  return new TemperError('TEMPER_MANIFEST_INVALID', message);
}

function verdictOn(value: Json, check: ValueCheck): FinishVerdict {
  const reply = JSON.stringify(value);
  if (reply.length > MAX_VALUE_CHARACTERS) {
    return { accepted: false, problem: `the value has ${reply.length} characters, above ${MAX_VALUE_CHARACTERS}` };
  }
  const violations = check(value);
  return violations.length === 0 ? { accepted: true, reply } : { accepted: false, problem: violations.join('; ') };
}

/** Its arguments are the value itself. It has no effect but to end the message, so no grant is needed. */
function finishTool(inputSchema: JsonObject): ToolDescriptor {
  return {
    name: FINISH_TOOL_NAME,
    description: 'End the task with its result: the arguments are the result. Call it once, when the task is done.',
    inputSchema,
    category: 'other',
    action: 'code:read',
    sideEffects: false,
    locality: 'Local',
  };
}
