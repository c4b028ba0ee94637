import { TemperError } from '../lib/errors.ts';
import type { Json } from '../lib/json.ts';
import type { ToolDescriptor } from './contract.ts';
import type { SchemaCompiler } from './json-schema/compiler.ts';

/** Throws TEMPER_TOOL_INPUT_INVALID when the arguments do not match the input schema of the tool. */
export function assertInput(schemas: SchemaCompiler, tool: ToolDescriptor, input: Json): void {
  const violations = schemas.check(tool.inputSchema)(input);
  if (violations.length === 0) return;
  throw new TemperError('TEMPER_TOOL_INPUT_INVALID', `arguments of "${tool.name}": ${violations.join('; ')}`);
}
