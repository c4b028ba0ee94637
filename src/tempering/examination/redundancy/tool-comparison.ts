import type { Json, JsonObject } from '../../../lib/json.ts';
import type { CallOptions } from '../../../lib/call-options.ts';
import type { SchemaCompiler } from '../../../tools/json-schema/compiler.ts';
import { printable } from '../../../lib/printable.ts';
import type { Verifier } from '../../types.ts';
import { skippedCheck } from '../check-result.ts';
import { InputRuns, type InputsPerRun } from '../input-runs.ts';
import type { CheckResult, ExaminationReport } from '../types.ts';
import type { IncomparableTool, ToolsInService } from './compared-tool.ts';
import { type ExaminedTool, redundancyCheck } from './redundancy-check.ts';

/** What the comparison with the tools in service gave. */
export interface ToolComparison {
  check: CheckResult;
  incomparable: readonly IncomparableTool[];
}

/** Of the tools that were not compared. */
const MAX_NAMED = 8;
const MAX_REASON = 200;
const NOT_EXAMINED = 'the examined tool gets answers from outside';

interface ComparisonDeps {
  verifier: Pick<Verifier, 'outputs'>;
  schemas: SchemaCompiler;
  inputsPerRun?: InputsPerRun;
}

/** Undefined when the agent has no other tool in service. */
export async function compareWithTools(
  examined: ExaminedTool,
  inService: ToolsInService | undefined,
  { verifier, schemas, inputsPerRun }: ComparisonDeps,
  op: CallOptions,
): Promise<ToolComparison | undefined> {
  if (inService === undefined || inService.tools.length === 0) return withoutComparison(inService);
  const matches = (schema: JsonObject, values: readonly Json[]): boolean => {
    const check = schemas.check(schema);
    return values.every((value) => check(value).length === 0);
  };
  const runs = {
    matches,
    runsOf: ({ artifact }: ExaminedTool['open']) => new InputRuns(verifier, artifact, inputsPerRun),
  };
  const check = await redundancyCheck(examined, inService.tools, runs, op);
  return { check, incomparable: inService.incomparable };
}

/** For a tool that cannot be compared. Undefined when there is nothing to compare it with. */
export function withoutComparison(inService: ToolsInService | undefined): ToolComparison | undefined {
  const { tools = [], incomparable = [] } = inService ?? {};
  const all = [...incomparable, ...tools.map(({ artifact }) => ({ name: artifact.name, reason: NOT_EXAMINED }))];
  if (all.length === 0) return undefined;
  const reason = `${all.length} tools in service were not compared, because outputs depend on more than the input`;
  return { check: skippedCheck('redundancy', 'Refuse', reason), incomparable: all };
}

export function withComparison(report: ExaminationReport, comparison: ToolComparison | undefined): ExaminationReport {
  if (comparison === undefined) return report;
  const { check, incomparable } = comparison;
  const named = incomparable
    .slice(0, MAX_NAMED)
    .map(({ name, reason }) => ({ name, reason: printable(reason, MAX_REASON) }));
  return {
    ...report,
    checks: [...report.checks, check],
    incomparableTools: incomparable.length,
    ...(named.length === 0 ? {} : { incomparable: named }),
  };
}
