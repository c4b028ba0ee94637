import type { ComposeStep } from '../../api/v1alpha1/emergenttool.ts';
import { printable } from '../../lib/printable.ts';
import { parseUntrustedJson } from '../../lib/json.ts';
import { DROP_TOOL_NAME, FORGE_TOOL_NAME } from '../../tools/forge-test-call.ts';
import { splitReference, type ForgeViolation } from '../request.ts';
import { type StepCondition, ConditionError, conditionReferences, parseCondition } from './condition.ts';
import { conditionHints } from './template-hints.ts';
import { parseTemplate, type ValueReference, referencesOf, type Template } from './references.ts';

/** A parsed step, ready to run. */
export interface PlannedStep {
  name: string;
  /** The reference for the invoker: a name, or `name@sha256:…`. */
  tool: string;
  toolName: string;
  mapping: Template;
  condition?: StepCondition;
}

export interface ComposePlan {
  steps: PlannedStep[];
  violations: ForgeViolation[];
}

/** Parses the steps of an artifact. Checks that references name earlier steps, conditions parse and the tool does not call itself. */
export function planSteps(name: string, steps: readonly ComposeStep[]): ComposePlan {
  const violations: ForgeViolation[] = [];
  const report = (step: ComposeStep, message: string): void => {
    violations.push({ code: 'TEMPER_FORGE_COMPOSE', message: `step "${printable(step.name, 64)}": ${message}` });
  };
  const planned = steps.map((step, index): PlannedStep => {
    const earlier = steps.slice(0, index).map((other) => other.name);
    const mapping = parseTemplate(parseUntrustedJson(step.inputMapping));
    const condition = readCondition(step, steps, report);
    const references = [...referencesOf(mapping), ...(condition === undefined ? [] : conditionReferences(condition))];
    for (const message of new Set(references.flatMap((reference) => referenceProblems(reference, earlier)))) {
      report(step, message);
    }
    const { name: toolName } = splitReference(step.tool);
    if (toolName === name) report(step, 'a tool cannot call itself; use a loop in a sandbox tool');
    if (toolName === FORGE_TOOL_NAME) report(step, 'a step cannot forge tools');
    if (toolName === DROP_TOOL_NAME) report(step, 'a step cannot drop tools');
    return { name: step.name, tool: step.tool, toolName, mapping, ...(condition === undefined ? {} : { condition }) };
  });
  return { steps: planned, violations };
}

function readCondition(
  step: ComposeStep,
  steps: readonly ComposeStep[],
  report: (step: ComposeStep, message: string) => void,
): StepCondition | undefined {
  if (step.condition === undefined) return undefined;
  try {
    return parseCondition(step.condition);
  } catch (error) {
    if (!(error instanceof ConditionError)) throw error;
    const [hint = error.message] = conditionHints(
      step.condition,
      steps.map(({ name }) => name),
    );
    report(step, printable(`condition ${JSON.stringify(step.condition.slice(0, 100))}: ${hint}`, 300));
    return undefined;
  }
}

function referenceProblems(reference: ValueReference, earlier: readonly string[]): string[] {
  if (reference.root === 'prev' && earlier.length === 0) {
    return ['$prev has nothing to refer to in the first step; use $input'];
  }
  if (reference.root !== 'steps' || earlier.includes(reference.step ?? '')) return [];
  const known = earlier.length === 0 ? 'no step comes before this one' : `earlier steps: ${earlier.join(', ')}`;
  return [
    `$steps.${printable(reference.step ?? '', 64)} is not an earlier step (${known}); write $$steps for the plain text`,
  ];
}
