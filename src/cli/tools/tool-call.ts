import { standaloneContext } from '../../forge/standalone-context.ts';
import { createForge } from '../../forge/forge.ts';
import { createForgedTool } from '../../forge/forged-tool.ts';
import { systemClock } from '../../lib/clock.ts';
import { isTemperError, messageOf, TemperError } from '../../lib/errors.ts';
import { printable, printableDocument } from '../../lib/printable.ts';
import { type Json, type JsonObject, parseUntrustedJson } from '../../lib/json.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import { createSupervisor } from '../../sandbox/supervisor.ts';
import { createSchemaCompiler } from '../../tools/json-schema/compiler.ts';
import { readInputFile } from '../input/input-files.ts';
import { type CliIo, errorLine, EXIT, writeJsonLine } from '../io.ts';
import { readTools } from './tool-source.ts';

export interface ToolCallOptions {
  file: string;
  /** JSON, `@FILE`, or `-` for standard input. */
  input: string;
  output: 'text' | 'json';
}

const CALL_TIMEOUT_MS = 60_000;

/** Calls one tool: static gates, digest, input schema, the call, output schema. */
export async function toolCall(options: ToolCallOptions, io: CliIo): Promise<number> {
  try {
    const input = await readInput(options.input, io);
    const { digest, name, output, milliseconds } = await call(options.file, input, io);
    if (options.output === 'json') writeJsonLine(io, { ok: true, tool: name, digest, output, milliseconds });
    else io.out(printableDocument(`${JSON.stringify(output, null, 2)}\n`));
    return EXIT.ok;
  } catch (error) {
    if (!isTemperError(error)) throw error;
    const { code, message } = error;
    if (options.output === 'json') writeJsonLine(io, { ok: false, error: { code, message } });
    else io.error(errorLine({ code, message }));
    return code === 'TEMPER_USAGE' ? EXIT.usage : EXIT.refused;
  }
}

async function call(
  file: string,
  input: Json,
  io: CliIo,
): Promise<{ name: string; digest: string; output: Json; milliseconds: number }> {
  const [found, second] = await readTools(file, io);
  if (found === undefined || second !== undefined) {
    throw new TemperError('TEMPER_USAGE', `${printable(file, 200)} must contain exactly one tool to call`);
  }
  const { source } = found;
  if ('problem' in source) throw source.problem;
  await using sandbox = await createSupervisor({ clock: systemClock, warm: 1, maxRunners: 1 });
  const schemas = createSchemaCompiler();
  const started = systemClock.monotonic();
  const op: CallOptions = { signal: io.signal, deadline: started + CALL_TIMEOUT_MS, key: 'tool-call' };
  const context = standaloneContext(source, () => {}, op);
  const inspected = createForge({ sandbox, clock: systemClock, schemas }).inspect(source, context);
  if ('accepted' in inspected)
    throw new TemperError(inspected.code, `refused at gate ${inspected.gate}: ${inspected.message}`);
  const { artifact, digest, inputSchema } = inspected.open;
  assertInput(artifact.name, schemas.check(inputSchema)(input));
  const deps = {
    sandbox,
    clock: systemClock,
    schemas,
    hostCalls: () => context.hostCalls(artifact),
    describe: noDescription,
  };
  const tool = createForgedTool(artifact, digest, 'Session', deps);
  const caller = { agent: 'cli', namespace: 'local', session: 'cli', rootMessage: 'cli' };
  const output = await tool.call(input, { ...caller, stack: [digest], origin: 'Agent', op, invoke: context.invoke });
  return { name: artifact.name, digest, output, milliseconds: Math.round(systemClock.monotonic() - started) };
}

const noDescription = (): undefined => undefined;

function assertInput(name: string, problems: readonly string[]): void {
  if (problems.length === 0) return;
  throw new TemperError('TEMPER_TOOL_INPUT_INVALID', `arguments of "${name}": ${problems.join('; ')}`);
}

async function readInput(input: string, io: CliIo): Promise<JsonObject | Json> {
  const text =
    input === '-'
      ? await io.stdin()
      : input.startsWith('@')
        ? await readInputFile(input.slice(1), '--input', io)
        : input;
  try {
    return parseUntrustedJson(text);
  } catch (error) {
    throw new TemperError('TEMPER_USAGE', `--input is not JSON: ${printable(messageOf(error), 200)}`);
  }
}
