import { printable } from '../../lib/printable.ts';
import type { ToolApi } from '../../api/v1alpha1/common.ts';
import {
  explainSyntaxError,
  fencedSyntaxError,
  missingEntryReason,
  type TypeStripper,
} from '../source-repair/refusal-reasons.ts';
import { parseSource, type SourceProblem } from '../static/parse.ts';
import { type ApiUse, findProblems } from '../static/rules.ts';
import type { ForgeViolation } from '../request.ts';

export interface StaticCheck {
  violations: ForgeViolation[];
  warnings: string[];
}

const MAX_SHOWN = 20;
const API_RULES: readonly { api: ToolApi; isUsed: string; otherwise: string }[] = [
  { api: 'fetch', isUsed: 'is used', otherwise: '' },
  { api: 'fs.readFile', isUsed: 'is used', otherwise: '' },
  { api: 'crypto', isUsed: 'is used', otherwise: '' },
  { api: 'clock', isUsed: 'reads the clock', otherwise: ', or take the time as an input' },
  { api: 'random', isUsed: 'is random', otherwise: ', or take the value as an input' },
];

/**
 * Finds forbidden code before anything runs. The result is advice and evidence; the sandbox is the security boundary. `strip` serves to
 * explain the syntax errors of TypeScript; it may take seconds, so a review of untrusted artifacts leaves it out.
 */
export function checkSource(source: string, declared: readonly ToolApi[], strip?: TypeStripper): StaticCheck {
  const fenced = fencedSyntaxError(source, strip);
  if (fenced !== undefined) return { violations: toViolations([fenced], 'TEMPER_FORGE_SYNTAX'), warnings: [] };
  const parsed = parseSource(source);
  if (parsed.program === undefined) {
    const { syntax, problems } = parsed;
    const explained = problems.map((problem, index) =>
      syntax && index === 0 ? explainSyntaxError(source, problem, strip) : problem,
    );
    return {
      violations: toViolations(explained, syntax ? 'TEMPER_FORGE_SYNTAX' : 'TEMPER_FORGE_STATIC'),
      warnings: [],
    };
  }
  const findings = findProblems(parsed.program);
  const violations = toViolations([...parsed.problems, ...findings.problems], 'TEMPER_FORGE_STATIC');
  violations.push(...undeclaredUses(findings.uses, declared));
  if (!findings.definesEntry) {
    violations.push({
      code: 'TEMPER_FORGE_STATIC',
      message: printable(missingEntryReason(parsed.program, source), 400),
    });
  }
  return { violations, warnings: warningsOf(findings.warnings, findings.uses, declared) };
}

function undeclaredUses(uses: ReadonlyMap<ToolApi, ApiUse>, declared: readonly ToolApi[]): ForgeViolation[] {
  const problems = API_RULES.flatMap(({ api, isUsed, otherwise }): SourceProblem[] => {
    const use = uses.get(api);
    if (use === undefined || declared.includes(api)) return [];
    const { line, column } = use;
    const name = api === 'clock' || api === 'random' ? use.name : api;
    const message = `${name} ${isUsed} but "${api}" is not declared; add "${api}" to implementation.allowlist${otherwise}`;
    return [{ line, column, message }];
  });
  return toViolations(problems, 'TEMPER_FORGE_STATIC');
}

function warningsOf(
  problems: readonly SourceProblem[],
  uses: ReadonlyMap<ToolApi, ApiUse>,
  declared: readonly ToolApi[],
): string[] {
  const warnings = problems.slice(0, MAX_SHOWN).map(withLocation);
  for (const api of declared)
    if (!uses.has(api)) warnings.push(`"${api}" is declared but not used; remove it from the allowlist`);
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
