import type { ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';

/** Host functions whose result depends on their arguments alone. */
const PURE_APIS: ReadonlySet<string> = new Set(['crypto']);

/**
 * Whether the output of a tool depends on its input alone, by its declarations: a re-run then needs no recorded answers. `isPureStep`
 * decides about the tool of a step, `name` or `name@digest`.
 */
export function isPure(
  { requires, implementation }: Pick<ToolArtifact, 'requires' | 'implementation'>,
  isPureStep: (tool: string) => boolean,
): boolean {
  const { steps } = implementation;
  if (steps === undefined) return requires.apis.every((api) => PURE_APIS.has(api));
  return steps.every(({ tool }) => isPureStep(tool));
}
