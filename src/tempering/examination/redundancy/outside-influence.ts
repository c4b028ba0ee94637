import type { ToolArtifact } from '../../../api/v1alpha1/emergenttool.ts';
import { isPure } from '../../../forge/compose/purity.ts';

/** The tool that a step calls. */
interface StepReference {
  readonly name: string;
  /** Absent for a built-in tool. */
  readonly digest?: string | undefined;
}

/** What decides whether the output of a tool depends on its input alone. */
export interface DeclaredTool {
  readonly requires: ToolArtifact['requires'];
  /** Absent for a tool in the sandbox. */
  readonly steps?: readonly StepReference[] | undefined;
}

/** The forge permits less; objects from Git are not forged. */
const MAX_DEPTH = 20;

/**
 * Finds why the output of a tool depends on more than its input, also through its steps: undefined when it does not. `byDigest` has the
 * tools that a step can call. Looks at each of them once.
 */
export function outsideInfluences(
  byDigest: ReadonlyMap<string, DeclaredTool>,
): (tool: DeclaredTool) => string | undefined {
  const known = new Map<string, string | undefined>();
  const ofStep = ({ name, digest }: StepReference, depth: number): string | undefined => {
    if (depth > MAX_DEPTH) return 'its steps are nested too deeply';
    if (digest === undefined) return `its step calls the built-in tool "${name}"`;
    if (!known.has(digest)) {
      const called = byDigest.get(digest);
      // A digest cannot contain itself, so this only ends a search that would be wrong anyway.
      known.set(digest, 'it is not in service');
      known.set(digest, called === undefined ? 'it is not in service' : influenceOn(called, depth));
    }
    const found = known.get(digest);
    return found === undefined ? undefined : `its step calls "${name}": ${found}`;
  };
  const influenceOn = ({ requires, steps }: DeclaredTool, depth: number): string | undefined => {
    if (steps === undefined) return declared(requires);
    return steps.map((step) => ofStep(step, depth + 1)).find((influence) => influence !== undefined);
  };
  return (tool) => influenceOn(tool, 0);
}

function declared(requires: ToolArtifact['requires']): string | undefined {
  const apis = requires.apis.filter((api) => !isPureApi({ ...requires, apis: [api] }));
  return apis.length === 0 ? undefined : `it declares ${apis.join(', ')}`;
}

function isPureApi(requires: ToolArtifact['requires']): boolean {
  return isPure({ requires, implementation: { mode: 'Sandbox' } }, () => false);
}
