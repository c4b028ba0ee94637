import { RUN_TOOL_NAME } from '../../agent/tools/run/run-descriptor.ts';
import { parseDuration } from '../../api/quantities.ts';
import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import { TemperError } from '../../lib/errors.ts';
import { isJsonObject, type Json, type JsonObject, member, parseUntrustedJson } from '../../lib/json.ts';
import { FORGE_TOOL_NAME, isForgeTestCall } from '../../tools/forge-test-call.ts';
import type { CallerContext, ToolDescriptor } from '../../tools/contract.ts';
import type { SchemaCompiler } from '../../tools/json-schema/compiler.ts';

const DEFAULT_TOOL_TIMEOUT = '60s';
/** Minimum timeout of `forge_tool`: a judge may take a minute. */
const FORGE_TIMEOUT_MS = 5 * 60_000;

export interface CompiledToolSettings {
  timeoutOf(tool: Pick<ToolDescriptor, 'name'>): number;
  /** The arguments of a call with the defaults of its tool. A forge tests a tool without the settings of its agent. */
  withDefaults(name: string, input: Json, caller: Pick<CallerContext, 'origin'>): Json;
}

/**
 * `spec.toolSettings` and the standard timeout. Throws TEMPER_MANIFEST_INVALID for defaults that a built-in tool has no argument for, or that
 * its schema refuses.
 */
export function compileToolSettings(
  { toolSettings = [], limits }: Pick<AgentSpec, 'toolSettings' | 'limits'>,
  builtIn: readonly ToolDescriptor[],
  schemas: Pick<SchemaCompiler, 'check'>,
): CompiledToolSettings {
  const standardMs = parseDuration(limits?.toolTimeout ?? DEFAULT_TOOL_TIMEOUT);
  const timeouts = new Map<string, number>();
  const defaults = new Map<string, JsonObject>();
  for (const { name, timeout, defaults: text } of toolSettings) {
    if (timeout !== undefined) timeouts.set(name, Math.min(standardMs, parseDuration(timeout)));
    if (text === undefined) continue;
    const values = objectIn(name, text);
    const tool = builtIn.find((descriptor) => descriptor.name === name);
    if (tool !== undefined) assertArguments(tool, values, schemas);
    defaults.set(name, values);
  }
  return {
    timeoutOf({ name }) {
      const own = timeouts.get(name);
      if (own !== undefined) return own;
      // A run ends with its limits, and with the deadline of the message.
      if (name === RUN_TOOL_NAME) return Number.MAX_SAFE_INTEGER;
      return name === FORGE_TOOL_NAME ? Math.max(standardMs, FORGE_TIMEOUT_MS) : standardMs;
    },
    withDefaults(name, input, caller) {
      const values = defaults.get(name.split('@', 1)[0] ?? name);
      if (values === undefined || !isJsonObject(input) || isForgeTestCall(caller)) return input;
      return { ...values, ...input };
    },
  };
}

function objectIn(name: string, text: string): JsonObject {
  let value: Json | undefined;
  try {
    value = parseUntrustedJson(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  if (isJsonObject(value)) return value;
  throw invalid(name, 'defaults is not a JSON object; write one as JSON text');
}

function assertArguments(
  { name, inputSchema }: ToolDescriptor,
  values: JsonObject,
  schemas: Pick<SchemaCompiler, 'check'>,
) {
  const known = member(inputSchema, 'properties');
  for (const [argument, value] of Object.entries(values)) {
    const schema = member(known, argument);
    if (!isJsonObject(schema)) throw invalid(name, `the tool has no argument "${argument}"; see its reference page`);
    const [problem] = schemas.check({ type: 'object', properties: { [argument]: schema } })({ [argument]: value });
    if (problem !== undefined) throw invalid(name, problem);
  }
}

function invalid(name: string, problem: string): TemperError {
  return new TemperError('TEMPER_MANIFEST_INVALID', `spec.toolSettings of "${name}": ${problem}`);
}
