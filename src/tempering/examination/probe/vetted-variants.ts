import type { ToolArtifact } from '../../../api/v1alpha1/emergenttool.ts';
import { checkSecrets } from '../../../forge/gates/secrets.ts';
import { checkSource } from '../../../forge/gates/static.ts';
import { SPREAD, WORK } from './probe-source.ts';

/** Whether a version of a source may run: a changed literal can make something that the static gate refuses in the tool itself. */
export type VetSource = (source: string) => boolean;

/** Stand for the functions that the harness of a counted version defines. */
const COUNTERS = `const ${WORK} = () => undefined; const ${SPREAD} = (value) => value;\n`;

/** The static gate and the search for secrets, for a version with a changed literal. Pure. */
export function vetVariant({ requires, ...artifact }: ToolArtifact): VetSource {
  return (source) => {
    if (checkSource(source, requires.apis).violations.length > 0) return false;
    const implementation = { mode: 'Sandbox' as const, source };
    return checkSecrets({ ...artifact, requires, implementation, tests: [] }).length === 0;
  };
}

/** The same for a version with counters, whose functions are no part of it. */
export function vetCounted(artifact: ToolArtifact): VetSource {
  const vet = vetVariant(artifact);
  return (source) => vet(`${COUNTERS}${source}`);
}
