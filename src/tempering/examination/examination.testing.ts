import type { ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import { denyingHost } from '../../forge/forge.testing.ts';
import { parseArtifact } from '../../forge/parse-artifact.ts';
import { sandboxJob } from '../../forge/sandbox-job.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import { type Json, parseUntrustedJson } from '../../lib/json.ts';
import type { Sandbox } from '../../sandbox/port.ts';
import type { RerunOutcome, Verifier } from '../types.ts';
import { runProbe } from './probe/run-probe.ts';

/** Longer outputs are repeated one by one. */
const MAX_TEXT = 30_000;

/** Runs each input once, in the order, in one sandbox that all tools share. */
export function singleRuns(sandbox: Sandbox): Pick<Verifier, 'outputs'> {
  return {
    async outputs(artifact, inputs, op) {
      const open = parseArtifact(artifact);
      if ('malformed' in open) throw new TypeError(open.malformed);
      const outcomes: RerunOutcome[] = [];
      for (const input of inputs) outcomes.push(await sandbox.run(sandboxJob(open, input), denyingHost, op));
      return outcomes;
    },
  };
}

/**
 * Runs the inputs of a call in one isolate, each in an instance of the tool of its own, so that hundreds of tools can be examined in
 * seconds. A batch that ends at a limit is repeated input by input.
 */
export function batchedRuns(sandbox: Sandbox): Pick<Verifier, 'outputs'> {
  const single = singleRuns(sandbox);
  return {
    async outputs(artifact, inputs, op) {
      const { source } = artifact.implementation;
      if (source === undefined || inputs.length < 2) return single.outputs(artifact, inputs, op);
      return (await batch(single, artifact, source, inputs, op)) ?? single.outputs(artifact, inputs, op);
    },
  };
}

async function batch(
  single: Pick<Verifier, 'outputs'>,
  artifact: ToolArtifact,
  source: string,
  inputs: readonly Json[],
  op: CallOptions,
): Promise<RerunOutcome[] | undefined> {
  const calls = inputs.map((_, index) => [0, index, 0] as const);
  const probed = await runProbe(single, artifact, { variants: [source], maxText: MAX_TEXT }, { inputs, calls }, op);
  if ('problem' in probed || probed.results.some(({ text }) => text.length > MAX_TEXT)) return undefined;
  return probed.results.map(
    ({ text, failed }): RerunOutcome =>
      failed || text === 'undefined'
        ? { ok: false, code: 'TEMPER_SANDBOX_EXCEPTION', message: 'the tool failed' }
        : { ok: true, output: parseUntrustedJson(text) },
  );
}
