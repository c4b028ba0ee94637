import type { Json } from '../../lib/json.ts';
import type { Decision, PolicyRequest } from '../../policy/types.ts';
import { policyDenied, toolRequest } from '../authorize.ts';
import type { ToolDescriptor } from '../contract.ts';
import { assertInput } from '../input-check.ts';
import type { SchemaCompiler } from '../json-schema/compiler.ts';

/**
 * The first checks of a call, for calls and for explanations of them: the tool may be listed, and the arguments match its schema. Throws
 * TEMPER_POLICY_DENIED and TEMPER_TOOL_INPUT_INVALID.
 */
export function assertCallable(
  tool: ToolDescriptor,
  input: Json,
  { decide, schemas }: { decide: (request: PolicyRequest) => Decision; schemas: SchemaCompiler },
): void {
  const listed = decide(toolRequest(tool));
  if (listed.effect === 'Deny') throw policyDenied(listed);
  assertInput(schemas, tool, input);
}
