import { bareWorld } from '../../forge/bare-world.ts';
import { createForge, type Forge } from '../../forge/forge.ts';
import type { Candidate, Refused } from '../../forge/types.ts';
import { systemClock } from '../../lib/clock.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import type { Op } from '../../lib/operation.ts';
import type { Sandbox } from '../../sandbox/port.ts';
import { createSupervisor } from '../../sandbox/supervisor.ts';
import { createSchemaCompiler } from '../../tools/schemas.ts';
import { type CliIo, EXIT, writeJsonLine } from '../io.ts';
import { type FoundTool, readTools } from '../tool-source.ts';

export interface ToolCheckOptions {
  files: string[];
  output: 'text' | 'json';
}

/** The answer about one tool; the lines of `--output json`. */
interface ToolReport {
  name: string;
  digest: string | null;
  accepted: boolean;
  /** The gate that refused; the last one passed when none did. */
  stage: string;
  code: string | null;
  message: string;
  tests: { passed: number; failed: number };
  milliseconds: number;
}

/** Runners, and tools in work at the same time: one more than runners, so that looking goes on while others run. */
const RUNNERS = 2;
const IN_WORK = 3;
/** No tool takes longer: 50 cases twice at their limit, two at a time. */
const TOOL_MILLISECONDS = 600_000;

/** Runs every deterministic gate over tools. Exit 0: all accepted; 1: any refused; 2: a file cannot be read. */
export async function toolCheck(options: ToolCheckOptions, io: CliIo): Promise<number> {
  let found: FoundTool[];
  try {
    found = (await Promise.all(options.files.map((file) => readTools(file, io)))).flat();
  } catch (error) {
    if (!isTemperError(error, 'TEMPER_USAGE')) throw error;
    io.error(`temper: ${error.code}: ${error.message}\n`);
    return EXIT.usage;
  }
  await using sandbox = startSandbox();
  const forge = createForge({ sandbox, clock: systemClock, schemas: createSchemaCompiler(), concurrency: RUNNERS });
  const limit = createLimit(IN_WORK);
  const reports = found.map((tool) => limit(() => checkOne(tool, forge, io.signal)));
  // A failure is met when its turn to be reported comes.
  for (const pending of reports) pending.catch(nothing);
  let refused = 0;
  for (const pending of reports) {
    const report = await pending;
    if (!report.accepted) refused += 1;
    if (options.output === 'json') writeJsonLine(io, { ...report });
    else io.out(lineOf(report, io.colour));
  }
  if (options.output === 'text') io.out(`${found.length - refused} of ${found.length} accepted\n`);
  return refused === 0 ? EXIT.ok : EXIT.refused;
}

/** Starts the runners without waiting for them: there is enough to look at meanwhile. */
function startSandbox(): Sandbox & AsyncDisposable {
  const starting = createSupervisor({ clock: systemClock, warm: RUNNERS, maxRunners: RUNNERS });
  starting.catch(nothing);
  return {
    run: async (job, host, op) => (await starting).run(job, host, op),
    async [Symbol.asyncDispose]() {
      await starting.then((sandbox) => sandbox[Symbol.asyncDispose](), nothing);
    },
  };
}

const nothing = (): void => {};

/** Lets so many pieces of work run at once, in the order they came. */
function createLimit(most: number): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (work) => {
    if (running >= most) await new Promise<void>((resolve) => waiting.push(resolve));
    running += 1;
    try {
      return await work();
    } finally {
      running -= 1;
      waiting.shift()?.();
    }
  };
}

async function checkOne(tool: FoundTool, forge: Forge, signal: AbortSignal): Promise<ToolReport> {
  const started = systemClock.monotonic();
  const { source } = tool;
  if ('problem' in source) {
    const { code, message } = source.problem;
    const tests = { passed: 0, failed: 0 };
    return { name: tool.name, digest: null, accepted: false, stage: 'shape', code, message, tests, milliseconds: 0 };
  }
  const op: Op = { signal, deadline: started + TOOL_MILLISECONDS, key: tool.origin };
  const result = await forge.check(
    source,
    bareWorld(source, () => {}, op),
  );
  const milliseconds = Math.round((systemClock.monotonic() - started) * 10) / 10;
  return 'accepted' in result ? { ...refusal(result), milliseconds } : { ...acceptance(result), milliseconds };
}

function refusal(refused: Refused): Omit<ToolReport, 'milliseconds'> {
  const { name, digest = null, gate: stage, code, message, details } = refused;
  const tests = { passed: count(details['passed']), failed: count(details['failed']) };
  return { name, digest, accepted: false, stage, code, message, tests };
}

function acceptance({ artifact, digest, evidence, gates }: Candidate): Omit<ToolReport, 'milliseconds'> {
  const stage = gates?.at(-1)?.gate ?? 'measured';
  const message = evidence.warnings.join('; ');
  const tests = { passed: artifact.tests.length, failed: 0 };
  return { name: artifact.name, digest, accepted: true, stage, code: null, message, tests };
}

function count(value: Json | undefined): number {
  return typeof value === 'number' ? value : 0;
}

function lineOf(report: ToolReport, colour: boolean): string {
  const paint = (code: number, text: string): string => (colour ? `\u001b[${code}m${text}\u001b[0m` : text);
  const { accepted, name, digest, stage, code, message, tests, milliseconds } = report;
  const mark = accepted ? paint(32, '✓') : paint(31, '✗');
  if (accepted) {
    const identity = (digest ?? '').slice('sha256:'.length, 'sha256:'.length + 8);
    const warnings = message === '' ? '' : `  ${message}`;
    return `${mark} ${name}@${identity}  tests ${tests.passed}/${tests.passed} ×2  ${Math.round(milliseconds)} ms${warnings}\n`;
  }
  return `${mark} ${name}  ${stage}  ${code ?? ''}\n    ${message}\n`;
}
