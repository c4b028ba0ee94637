import type { ComposePlan, PlannedStep } from '../../forge/compose/plan.ts';
import type { StepCondition } from '../../forge/compose/condition.ts';
import type { Template, ValueReference } from '../../forge/compose/references.ts';
import type { Json, JsonObject } from '../../lib/json.ts';
import type { Obfuscator } from './obfuscation.ts';

/** The steps of a composed tool, made from what the engine runs: the parsed mappings and conditions. */
export function normalizeSteps({ steps }: ComposePlan, obfuscator: Obfuscator): JsonObject[] {
  return steps.map((step) => stepOf(step, obfuscator));
}

function stepOf({ name, tool, toolName, mapping, condition }: PlannedStep, obfuscator: Obfuscator): JsonObject {
  return {
    name: obfuscator.name(name),
    tool: obfuscator.name(toolName) + tool.slice(toolName.length),
    input: templateOf(mapping, obfuscator),
    ...(condition === undefined ? {} : { condition: conditionOf(condition, obfuscator) }),
  };
}

function templateOf(template: Template, obfuscator: Obfuscator): Json {
  switch (template.kind) {
    case 'literal':
      return obfuscator.value(template.value);
    case 'reference':
      return referenceOf(template.reference, obfuscator);
    case 'text':
      return {
        $join: template.parts.map((part) =>
          typeof part === 'string' ? obfuscator.text(part) : referenceOf(part, obfuscator),
        ),
      };
    case 'list':
      return template.items.map((item) => templateOf(item, obfuscator));
    default:
      return Object.fromEntries(
        template.members.map(([key, item]) => [obfuscator.name(key), templateOf(item, obfuscator)]),
      );
  }
}

/** `$input.price`, `$steps.p1.rows`; no text of the author is shown that begins with a dollar sign and a letter. */
function referenceOf({ root, step, path }: ValueReference, obfuscator: Obfuscator): string {
  const names = [...(step === undefined ? [] : [step]), ...path];
  return [`$${root}`, ...names.map((name) => obfuscator.name(name))].join('.');
}

function conditionOf(condition: StepCondition, obfuscator: Obfuscator): string {
  switch (condition.kind) {
    case 'literal':
      return JSON.stringify(obfuscator.value(condition.value));
    case 'reference':
      return referenceOf(condition.reference, obfuscator);
    case 'not':
      return `!(${conditionOf(condition.operand, obfuscator)})`;
    default:
      return `(${conditionOf(condition.left, obfuscator)} ${condition.operator} ${conditionOf(condition.right, obfuscator)})`;
  }
}
