import { TemperError } from '../../../lib/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../../../lib/json.ts';
import type { CallContext, Tool, ToolDescriptor } from '../../../tools/contract.ts';
import type { SchemaCompiler } from '../../../tools/json-schema/compiler.ts';
import { type ConfiguredServer, hostsOfTool } from '../read-servers.ts';
import { outputOf } from './call-output.ts';
import type { ListedTool } from './listed-tool.ts';

export interface ServerToolDeps {
  /** Calls the tool on a connection of the session. */
  call: (tool: ListedTool, input: JsonObject, context: CallContext) => Promise<JsonObject>;
  schemas: Pick<SchemaCompiler, 'check'>;
}

/** An accepted tool under the name and the description that agents have of it. */
export interface OfferedTool {
  tool: ListedTool;
  descriptor: ToolDescriptor;
}

/** The offered tools of a server for an agent. What the model reads of a tool is what the user accepted, never what the server says now. */
export function serverTools(offered: readonly OfferedTool[], { call, schemas }: ServerToolDeps): Tool[] {
  return offered.map(({ tool, descriptor }) => ({
    descriptor,
    async call(input: Json, context: CallContext) {
      const { name, outputSchema } = descriptor;
      if (!isJsonObject(input)) throw new TemperError('TEMPER_TOOL_INPUT_INVALID', `"${name}" takes an object`);
      const output = outputOf(name, await call(tool, input, context));
      const [problem] = outputSchema === undefined ? [] : schemas.check(outputSchema)(output);
      if (problem === undefined) return output;
      throw new TemperError('TEMPER_TOOL_OUTPUT_INVALID', `the output of "${name}" breaks its schema: ${problem}`);
    },
  }));
}

/** The tool as models and policies read it, when no Capability describes it otherwise. */
export function serverToolDescriptor(tool: ListedTool, server: ConfiguredServer): ToolDescriptor {
  const { name, description, inputSchema, outputSchema, action, sideEffects } = tool;
  return {
    name,
    description,
    inputSchema,
    ...(outputSchema === undefined ? {} : { outputSchema }),
    category: server.category,
    resultOrigin: 'Mcp',
    action,
    sideEffects,
    locality: 'Brokered',
    ...hostsOfTool(server, tool),
  };
}
