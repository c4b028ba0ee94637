import { parseDuration } from '../../../api/quantities.ts';
import type { ToolArtifact } from '../../../api/v1alpha1/emergenttool.ts';
import { printable } from '../../../lib/printable.ts';
import { isJsonObject, type Json, member } from '../../../lib/json.ts';
import type { CallOptions } from '../../../lib/call-options.ts';
import type { Verifier } from '../../types.ts';
import { type ProbeCall, type ProbeProgram, probeSource } from './probe-source.ts';

/** The sources of all variants together; more variants are left out by the caller. */
export const MAX_VARIANT_CHARACTERS = 90_000;
/** A probe calls the tool hundreds of times. */
const CALL_DURATIONS = 10;
const MAX_DURATION_MS = 5_000;

/** One call of a probe. A failed call has no text that means anything. */
export interface ProbeResult {
  text: string;
  failed: boolean;
  mutated: boolean;
  work: number;
}

/** Runs a probe in a fresh sandbox. What it returns comes from a process that ran guest code: it may lie about the tool, like every output. */
export async function runProbe(
  verifier: Pick<Verifier, 'outputs'>,
  artifact: ToolArtifact,
  program: ProbeProgram,
  about: { inputs: readonly Json[]; calls: readonly ProbeCall[] },
  op: CallOptions,
): Promise<{ results: ProbeResult[] } | { problem: string }> {
  const probe: ToolArtifact = {
    ...artifact,
    inputSchema: '{"type":"object"}',
    outputSchema: '{}',
    implementation: { mode: 'Sandbox', source: probeSource(program) },
    tests: [],
    limits: { ...artifact.limits, duration: `${durationOf(artifact)}ms` },
  };
  const input = { inputs: about.inputs, calls: about.calls } as unknown as Json;
  const [outcome] = await verifier.outputs(probe, [input], op);
  if (outcome?.ok !== true) return { problem: printable(outcome?.message ?? 'it gave no output', 200) };
  const results = member(outcome.output, 'results');
  if (!Array.isArray(results) || results.length !== about.calls.length) return { problem: 'it gave another output' };
  return { results: results.map(readResult) };
}

function durationOf({ limits }: ToolArtifact): number {
  return Math.min(MAX_DURATION_MS, CALL_DURATIONS * parseDuration(limits.duration));
}

function readResult(value: Json): ProbeResult {
  const { text, failed, mutated, work } = isJsonObject(value) ? value : {};
  return {
    text: typeof text === 'string' ? text : '',
    failed: failed !== false,
    mutated: mutated === true,
    work: typeof work === 'number' ? work : 0,
  };
}
