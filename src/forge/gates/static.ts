import { printable } from '../../lib/printable.ts';
import type { ToolApi } from '../../api/v1alpha1/common.ts';
import { missingEntryReason, unreadableReason } from '../source-repair/refusal-reasons.ts';
import { parseSource, type SourceProblem } from '../static/parse.ts';
import { findProblems } from '../static/rules.ts';
import type { ForgeViolation } from '../request.ts';

export interface StaticCheck {
  violations: ForgeViolation[];
  warnings: string[];
}

const MAX_SHOWN = 20;
/** Host functions that must be declared. An undeclared clock or randomness is not refused, only frozen. */
const MUST_DECLARE: readonly ToolApi[] = ['fetch', 'fs.readFile', 'crypto'];

/** Finds forbidden code before anything runs. The result is advice and evidence; the sandbox is the security boundary. */
export function checkSource(source: string, declared: readonly ToolApi[]): StaticCheck {
  const parsed = parseSource(source);
  if (parsed.program === undefined) {
    const reason = parsed.syntax ? unreadableReason(source) : undefined;
    const [first, ...others] = parsed.problems;
    const named = reason === undefined || first === undefined ? [] : [{ ...first, message: reason }, ...others];
    return {
      violations: toViolations(
        named.length > 0 ? named : parsed.problems,
        parsed.syntax ? 'TEMPER_FORGE_SYNTAX' : 'TEMPER_FORGE_STATIC',
      ),
      warnings: [],
    };
  }
  const findings = findProblems(parsed.program);
  const violations = toViolations([...parsed.problems, ...findings.problems], 'TEMPER_FORGE_STATIC');
  for (const api of MUST_DECLARE) {
    if (!findings.uses.has(api) || declared.includes(api)) continue;
    violations.push({
      code: 'TEMPER_FORGE_STATIC',
      message: `${api} is used but not declared; add "${api}" to implementation.allowlist`,
    });
  }
  if (!findings.definesEntry) {
    violations.push({
      code: 'TEMPER_FORGE_STATIC',
      message: printable(missingEntryReason(parsed.program, source), 400),
    });
  }
  return { violations, warnings: warningsOf(findings.warnings, findings.uses, declared) };
}

function warningsOf(
  problems: readonly SourceProblem[],
  uses: ReadonlySet<ToolApi>,
  declared: readonly ToolApi[],
): string[] {
  const warnings = problems.slice(0, MAX_SHOWN).map(withLocation);
  for (const api of declared)
    if (!uses.has(api)) warnings.push(`"${api}" is declared but not used; remove it from the allowlist`);
  if (uses.has('clock') && !declared.includes('clock')) {
    warnings.push('the time is read but "clock" is not declared; the time is frozen');
  }
  if (uses.has('random') && !declared.includes('random')) {
    warnings.push('randomness is used but "random" is not declared; the random numbers are the same in every run');
  }
  return warnings;
}

function toViolations(problems: readonly SourceProblem[], code: ForgeViolation['code']): ForgeViolation[] {
  const shown = problems
    .slice(0, MAX_SHOWN)
    .map((problem): ForgeViolation => ({ code, message: withLocation(problem) }));
  if (problems.length > MAX_SHOWN) shown.push({ code, message: `and ${problems.length - MAX_SHOWN} more` });
  return shown;
}

function withLocation({ line, column, message }: SourceProblem): string {
  return `line ${line}:${column + 1}: ${message}`;
}
