import type { Json } from '../lib/json.ts';
import type { Job } from '../sandbox/port.ts';
import type { OpenArtifact } from './open-artifact.ts';

/** What a tool's call may move besides its own time and memory. */
const OUTPUT_BYTES = 1_048_576;
const HOST_CALLS = 50;
const HOST_BYTES = 4_194_304;

/** One call of a sandbox tool. Expected outputs are no part of it. */
export function jobOf(open: OpenArtifact, input: Json): Job {
  return {
    language: 'javascript',
    source: open.artifact.implementation.source ?? '',
    input,
    apis: open.artifact.requires.apis,
    limits: {
      durationMilliseconds: open.durationMilliseconds,
      memoryBytes: open.memoryBytes,
      outputBytes: OUTPUT_BYTES,
      hostCalls: HOST_CALLS,
      hostBytes: HOST_BYTES,
    },
  };
}
