import { parseDuration } from '../../api/quantities.ts';
import type { ToolArtifact } from '../../api/v1alpha1/emergenttool.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { Json } from '../../lib/json.ts';
import type { RerunOutcome, Verifier } from '../types.ts';
import { isLimitFailure } from '../verification/verification-case.ts';

/** Inputs of one call of the verifier. */
export interface InputsPerRun {
  readonly count: number;
  readonly bytes: number;
}

/** A call opens a fresh sandbox. */
const INPUTS_PER_RUN: InputsPerRun = { count: 16, bytes: Number.POSITIVE_INFINITY };
/** After so many runs that ended at a limit the others are not started: each takes as long as the limit. */
export const MAX_LIMIT_FAILURES = 3;
/** Inputs that ran to their end, without which an examination that was cut short decides nothing. */
const MIN_INPUTS = 12;
const MAX_DURATION_MS = 1_000;
/** The tool with a limit that lets an examination end: a tool that uses all of its time must not use all of that of others. */
function withShortLimit(artifact: ToolArtifact): ToolArtifact {
  const { limits } = artifact;
  if (parseDuration(limits.duration) <= MAX_DURATION_MS) return artifact;
  return { ...artifact, limits: { ...limits, duration: `${MAX_DURATION_MS}ms` } };
}

/** The outcomes of one tool by input. Each input runs once per examination, however many checks use it. */
export class InputRuns {
  readonly #verifier: Pick<Verifier, 'outputs'>;
  readonly #artifact: ToolArtifact;
  readonly #perRun: InputsPerRun;
  /** By JSON text: the order of members is part of an input here. */
  readonly #outcomes = new Map<string, RerunOutcome>();
  #limitFailures = 0;

  constructor(verifier: Pick<Verifier, 'outputs'>, artifact: ToolArtifact, perRun = INPUTS_PER_RUN) {
    this.#verifier = verifier;
    this.#artifact = withShortLimit(artifact);
    this.#perRun = perRun;
  }

  get count(): number {
    return this.#outcomes.size;
  }

  /** Whether so many runs ended at a limit that too few inputs are left to say anything about the tool. */
  get isInconclusive(): boolean {
    return this.#isCutShort && this.count - this.#limitFailures < MIN_INPUTS;
  }

  get #isCutShort(): boolean {
    return this.#limitFailures >= MAX_LIMIT_FAILURES;
  }

  async run(inputs: readonly Json[], op: CallOptions): Promise<void> {
    const texts = new Map(inputs.map((input) => [JSON.stringify(input), input]));
    const waiting = [...texts].filter(([text]) => !this.#outcomes.has(text));
    while (waiting.length > 0 && !this.#isCutShort) {
      const chunk = waiting.splice(0, sizeOfRun(waiting, this.#perRun));
      const outcomes = await this.#verifier.outputs(
        this.#artifact,
        chunk.map(([, input]) => input),
        op,
      );
      for (const [index, [text]] of chunk.entries()) this.#store(text, outcomes[index]);
    }
  }

  outcomeOf(input: Json): RerunOutcome | undefined {
    return this.#outcomes.get(JSON.stringify(input));
  }

  /** The output for an input; undefined when the tool failed or did not run. */
  outputOf(input: Json): Json | undefined {
    const outcome = this.outcomeOf(input);
    return outcome?.ok === true ? outcome.output : undefined;
  }

  #store(text: string, outcome: RerunOutcome | undefined): void {
    if (outcome === undefined) return;
    this.#outcomes.set(text, outcome);
    if (isLimitFailure(outcome)) this.#limitFailures += 1;
  }
}

/** How many of the inputs one call takes; at least one. */
function sizeOfRun(waiting: readonly (readonly [text: string, input: Json])[], { count, bytes }: InputsPerRun): number {
  let total = 0;
  const tooMany = waiting.findIndex(([text], index) => {
    total += Buffer.byteLength(text);
    return index >= count || (index > 0 && total > bytes);
  });
  return tooMany === -1 ? waiting.length : tooMany;
}
