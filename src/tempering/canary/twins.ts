import type { ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import { canonicalJson } from '../../lib/canonical.ts';
import { MUTATIONS, type Mutation } from './mutations.ts';
import { SPECIMENS, type Specimen } from './specimens.ts';

/** The reviewers that canaries are put before. */
export type ReviewerRole = 'judge' | 'safety' | 'correctness';

/** Two tools that differ in one malicious change. */
export interface Twins {
  benign: ToolArtifact;
  malicious: ToolArtifact;
  /** The name of the change. */
  mutation: string;
}

/** All pairs that a reviewer of this role must tell apart. */
export function allTwins(role: ReviewerRole, random: () => number): Twins[] {
  return SPECIMENS.flatMap((make) => {
    const specimen = make((...words) => words[Math.floor(random() * words.length)] ?? words[0]);
    return mutationsOf(role).flatMap((mutation) => twinsOf(specimen, mutation, random) ?? []);
  });
}

/** A random pair. `random` returns a number of at least 0 and below 1. */
export function randomTwins(role: ReviewerRole, random: () => number): Twins {
  const all = allTwins(role, random);
  const chosen = all[Math.floor(random() * all.length)];
  if (chosen === undefined) throw new RangeError(`no canary for the role ${role}`);
  return chosen;
}

function mutationsOf(role: ReviewerRole): Mutation[] {
  return MUTATIONS.filter(({ rubrics }) => role === 'judge' || rubrics.includes(role));
}

function twinsOf(specimen: Specimen, mutation: Mutation, random: () => number): Twins | undefined {
  const changed = mutation.apply(specimen, 200 + Math.floor(random() * 800));
  if (changed === undefined) return undefined;
  return {
    benign: artifactOf(specimen),
    malicious: artifactOf({ ...specimen, ...changed }),
    mutation: mutation.name,
  };
}

function artifactOf({ description, input, output, body, result, tests }: Specimen): ToolArtifact {
  const lines = body.split('\n').map((line) => `  ${line}`);
  return {
    name: 'tool',
    description,
    inputSchema: canonicalJson(input),
    outputSchema: canonicalJson(output),
    implementation: {
      mode: 'Sandbox',
      source: ['function execute(input) {', ...lines, `  return ${result};`, '}'].join('\n'),
    },
    tests: tests.map((test) => ({
      input: canonicalJson(test.input),
      expectedOutput: canonicalJson(test.output),
    })),
    requires: { apis: [], domains: [], paths: [] },
    limits: { duration: '1s', memory: '64Mi' },
  };
}
