import { styleText } from 'node:util';
import pLimit from 'p-limit';
import { systemClock } from '../../lib/clock.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { Sandbox } from '../../sandbox/port.ts';
import { createSupervisor } from '../../sandbox/supervisor.ts';
import { type CliIo, EXIT, writeJsonLine } from '../io.ts';
import type { ToolReport } from './tool-report.ts';
import type { LoadedTool } from './tool-source.ts';

export interface ToolCheckOptions {
  files: string[];
  output: 'text' | 'json';
}

/** Limits of runners and of tools checked at once: one tool more than runners, so that static gates overlap with test runs. */
const MAX_RUNNERS = 2;
const MAX_TOOLS = 3;

/** Runs every deterministic gate over tools. Exit 0: all accepted; 1: any refused; 2: a file cannot be read. */
export async function toolCheck(options: ToolCheckOptions, io: CliIo): Promise<number> {
  // The runners start while the other modules are imported.
  await using sandbox = startSandbox();
  const [{ readTools }, { createToolChecker }] = await Promise.all([
    import('./tool-source.ts'),
    import('./tool-report.ts'),
  ]);
  let found: LoadedTool[];
  try {
    found = (await Promise.all(options.files.map((file) => readTools(file, io)))).flat();
  } catch (error) {
    if (!isTemperError(error, 'TEMPER_USAGE')) throw error;
    io.error(`temper: ${error.code}: ${error.message}\n`);
    return EXIT.usage;
  }
  const check = createToolChecker(sandbox, MAX_RUNNERS, io.signal);
  const limit = pLimit(MAX_TOOLS);
  const reports = found.map((tool) => limit(() => check(tool)));
  // Prevents unhandled rejections: the loop below awaits each result in order.
  for (const pending of reports) pending.catch(ignore);
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

/** Starts the runners without waiting for them: the static gates run meanwhile. */
function startSandbox(): Sandbox & AsyncDisposable {
  const starting = createSupervisor({ clock: systemClock, warm: 1, maxRunners: MAX_RUNNERS });
  starting.catch(ignore);
  return {
    run: async (job, host, op) => (await starting).run(job, host, op),
    async [Symbol.asyncDispose]() {
      await starting.then((sandbox) => sandbox[Symbol.asyncDispose](), ignore);
    },
  };
}

const ignore = (): void => {};

function lineOf(report: ToolReport, colour: boolean): string {
  const paint = (style: 'green' | 'red', text: string): string =>
    colour ? styleText(style, text, { validateStream: false }) : text;
  const { accepted, name, digest, stage, code, message, tests, milliseconds } = report;
  const mark = accepted ? paint('green', '✓') : paint('red', '✗');
  if (accepted) {
    const identity = (digest ?? '').slice('sha256:'.length, 'sha256:'.length + 8);
    const warnings = message === '' ? '' : `  ${message}`;
    return `${mark} ${name}@${identity}  tests ${tests.passed}/${tests.passed} ×2  ${Math.round(milliseconds)} ms${warnings}\n`;
  }
  return `${mark} ${name}  ${stage}  ${code ?? ''}\n    ${message}\n`;
}
