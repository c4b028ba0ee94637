import { standaloneContext } from '../../forge/standalone-context.ts';
import { createForge } from '../../forge/forge.ts';
import type { ToolCandidate, RefusedTool } from '../../forge/types.ts';
import { isTemperError, messageOf } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { systemClock } from '../../lib/clock.ts';
import type { Json } from '../../lib/json.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { Sandbox } from '../../sandbox/port.ts';
import { createSchemaCompiler } from '../../tools/json-schema/compiler.ts';
import type { LoadedTool } from './tool-source.ts';

/** The result of checking one tool; one line of `--output json`. */
export interface ToolReport {
  name: string;
  digest: string | null;
  accepted: boolean;
  /** The gate that refused the tool; the last gate when the tool was accepted. */
  stage: string;
  code: string | null;
  message: string;
  tests: { passed: number; failed: number };
  milliseconds: number;
}

/** Upper bound for one tool: 50 test cases, each run twice at its time limit, two at a time. */
const TOOL_TIMEOUT_MS = 600_000;

/** Creates a function that checks one tool without network, files or other tools. `concurrency` limits the tests of one tool. */
export function createToolChecker(
  sandbox: Sandbox,
  concurrency: number,
  signal: AbortSignal,
): (tool: LoadedTool) => Promise<ToolReport> {
  const forge = createForge({ sandbox, clock: systemClock, schemas: createSchemaCompiler(), concurrency });
  return async (tool) => {
    const started = systemClock.monotonic();
    const { source } = tool;
    if ('problem' in source) {
      const { code, message } = source.problem;
      const tests = { passed: 0, failed: 0 };
      return { name: tool.name, digest: null, accepted: false, stage: 'shape', code, message, tests, milliseconds: 0 };
    }
    const op: CallOptions = { signal, deadline: started + TOOL_TIMEOUT_MS, key: tool.origin };
    const result = await checked(
      () =>
        forge.check(
          source,
          standaloneContext(source, () => {}, op),
        ),
      tool.name,
      signal,
    );
    const milliseconds = Math.round((systemClock.monotonic() - started) * 10) / 10;
    return 'accepted' in result ? { ...refusal(result), milliseconds } : { ...acceptance(result), milliseconds };
  };
}

/** An error while one tool is checked is a refusal of that tool; the others are still checked. */
async function checked(
  check: () => Promise<ToolCandidate | RefusedTool>,
  name: string,
  signal: AbortSignal,
): Promise<ToolCandidate | RefusedTool> {
  try {
    return await check();
  } catch (error) {
    if (signal.aborted) throw error;
    const code = isTemperError(error) ? error.code : 'TEMPER_TOOL_FAILED';
    const message = printable(`the check itself failed: ${messageOf(error)}`, 600);
    return { accepted: false, name, gate: 'shape', code, class: 'other', message, details: {}, gates: [] };
  }
}

function refusal(refused: RefusedTool): Omit<ToolReport, 'milliseconds'> {
  const { name, digest = null, gate: stage, code, message, details } = refused;
  const tests = { passed: count(details['passed']), failed: count(details['failed']) };
  return { name, digest, accepted: false, stage, code, message, tests };
}

function acceptance({ artifact, digest, evidence, gates }: ToolCandidate): Omit<ToolReport, 'milliseconds'> {
  const stage = gates?.at(-1)?.gate ?? 'resources';
  const message = evidence.warnings.join('; ');
  const tests = { passed: artifact.tests.length, failed: 0 };
  return { name: artifact.name, digest, accepted: true, stage, code: null, message, tests };
}

function count(value: Json | undefined): number {
  return typeof value === 'number' ? value : 0;
}
