import type { Json } from '../lib/json.ts';
import type { Job } from '../sandbox/port.ts';
import type { ParsedArtifact } from './parse-artifact.ts';

/** Limits of one call besides its duration and memory. */
const MAX_OUTPUT_BYTES = 1_048_576;
const MAX_HOST_CALLS = 50;
const MAX_HOST_BYTES = 4_194_304;

export type SandboxJobOptions = Pick<Job, 'timeAndRandomness' | 'owner'>;

/** The job for one call of a sandbox tool. It never contains expected outputs. */
export function sandboxJob(open: ParsedArtifact, input: Json, options: SandboxJobOptions = {}): Job {
  return {
    language: 'javascript',
    source: open.artifact.implementation.source ?? '',
    input,
    apis: open.artifact.requires.apis,
    limits: {
      durationMilliseconds: open.durationMilliseconds,
      memoryBytes: open.memoryBytes,
      outputBytes: MAX_OUTPUT_BYTES,
      hostCalls: MAX_HOST_CALLS,
      hostBytes: MAX_HOST_BYTES,
    },
    ...options,
  };
}
